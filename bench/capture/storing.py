"""Owns what storing costs: bytes of an agent's calls in the database, calls a second, CPU time a call."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil

from bench.gateway.peers import Target
from gateway.capture.record import Envelope
from gateway.capture.spool import Spool
from gateway.capture.writer import Writer
from gateway.core.clock import now
from gateway.core.db import session_scope
from gateway.core.ids import new_id
from gateway.models import Price, Project, Upstream

Exchange = tuple[bytes, bytes]


def airline(path: Path) -> Iterator[Exchange]:
    """Each assistant turn of the recorded conversations as a call: the request it answers, and the answer."""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            messages = json.loads(line)["messages"]
            for index, message in enumerate(messages):
                if message["role"] == "assistant":
                    yield _exchange(messages[:index], message, index)


def _exchange(messages: list[Any], answer: dict[str, Any], index: int) -> Exchange:
    choice = {
        "index": 0, "message": answer, "logprobs": None,
        "finish_reason": "tool_calls" if answer.get("tool_calls") else "stop",
    }  # fmt: skip
    response = {
        "id": f"chatcmpl-{new_id().hex}", "object": "chat.completion", "created": 1_760_000_000 + index,
        "model": "gpt-4o-2024-08-06", "choices": [choice],
        "usage": {"prompt_tokens": 3000 + index, "completion_tokens": 60, "total_tokens": 3060 + index},
    }  # fmt: skip
    return _compact({"model": "gpt-4o", "messages": messages}), _compact(response)


def _compact(value: Any) -> bytes:
    """JSON as the openai package sends it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def chats(count: int) -> Iterator[Exchange]:
    """Short calls of one job, as the gateway's bench sends them, each about something else."""
    body = json.loads(Target("mock", "").body(stream=False))
    for number in range(count):
        body["messages"] = [{"role": "user", "content": f"Where is parcel {number}? I ordered it nine days ago."}]
        yield _exchange(body["messages"], {"role": "assistant", "content": f"Parcel {number} left today."}, number)


def project() -> tuple[UUID, UUID]:
    """A new project and its priced upstream."""
    with session_scope() as session:
        row = Project(name=f"bench-{new_id()}")
        session.add(row)
        session.flush()
        upstream = Upstream(project_id=row.id, name="mock", kind="openai", base_url="http://127.0.0.1:1/v1")
        session.add(upstream)
        session.flush()
        session.add(
            Price(
                project_id=row.id, upstream_id=upstream.id, input_per_mtok=Decimal("2.5"), source="bench",
                cached_input_per_mtok=Decimal("1.25"), output_per_mtok=Decimal(10), effective_from=now(),
            )
        )  # fmt: skip
        return row.id, upstream.id


def spooled(folder: Path, exchanges: Iterable[Exchange]) -> tuple[int, int]:
    """Spools calls of a new project as the relay would. Returns how many, and the bytes of their bodies."""
    project_id, upstream_id = project()
    spool, key_id, calls, size = Spool(folder), new_id(), 0, 0
    folder.mkdir(parents=True, exist_ok=True)
    for request, response in exchanges:
        envelope = Envelope(
            id=new_id(), project_id=project_id, key_id=key_id, received_ns=time.time_ns(), alias="gpt-4o", task_id=None,
            task_slug=None, served_by="upstream", upstream_id=upstream_id, student_id=None, route_revision_id=None,
            fallback_reason=None, streamed=False, status=200, request_encoding=None, response_encoding=None,
            capture="full", cut=None, error=None, latency_ns=800_000_000, ttfb_ns=800_000_000, overhead_ns=200_000,
        )  # fmt: skip
        if not spool.append(envelope, request, [response]):
            raise RuntimeError(f"the spool in {folder} cannot be written: {spool.failure}")
        calls, size = calls + 1, size + len(request) + len(response)
    spool.close()
    return calls, size


def store(folder: Path, home: Path) -> dict[str, float]:
    """Stores what is spooled by the writer's own code: seconds, and CPU seconds of it and of the home's PostgreSQL."""
    writer, postgres_pid = Writer(folder), _postmaster(home)
    ours, theirs, began = os.times(), _cpu_of(postgres_pid), time.monotonic()
    while writer.advance():
        pass
    used = os.times()
    return {
        "seconds": time.monotonic() - began,
        "writer_cpu": used.user + used.system - ours.user - ours.system,
        "postgres_cpu": _cpu_of(postgres_pid) - theirs,
    }


def _postmaster(home: Path) -> int:
    return next(
        process.pid
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == "postgres" and any(str(home) in word for word in process.info["cmdline"] or ())
    )


def _cpu_of(pid: int) -> float:
    parent = psutil.Process(pid)
    total = 0.0
    for process in (parent, *parent.children(recursive=True)):
        spent = process.cpu_times()
        total += spent.user + spent.system
    return total
