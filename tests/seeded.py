"""Rows that many tests begin with: a project, its upstream, a task, calls with their bodies, a run."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy.orm import Session

from gateway.capture.blobs import Codec, digest_of
from gateway.capture.repository import ensure_partitions, insert_blobs
from gateway.core import jsontext
from gateway.core.clock import now
from gateway.core.ids import new_id
from gateway.core.secretbox import seal
from gateway.models import Call, Price, Project, Run, Task, Upstream
from gateway.runs.schemas import JudgedBar, RunConfig, dump_bars
from gateway.tasks.fingerprint import fingerprint, input_hash


def project(session: Session, name: str = "default") -> Project:
    row = Project(name=name)
    session.add(row)
    session.flush()
    return row


def upstream(session: Session, owner: Project, name: str = "frontier", **fields: Any) -> Upstream:
    values: dict[str, Any] = {
        "kind": "openai",
        "base_url": "http://127.0.0.1:9/v1",
        "model": "frontier-1",
        "credential": seal("sk-test"),
        "train_on_output": "allowed",
        "judge_with": "allowed",
    }
    row = Upstream(project_id=owner.id, name=name, **(values | fields))
    session.add(row)
    session.flush()
    return row


def price(session: Session, of: Upstream, per_mtok: str = "1") -> Price:
    row = Price(
        project_id=of.project_id,
        upstream_id=of.id,
        input_per_mtok=per_mtok,
        cached_input_per_mtok=per_mtok,
        output_per_mtok=per_mtok,
        source="test",
        effective_from=now(),
    )
    session.add(row)
    session.flush()
    return row


def task(session: Session, owner: Project, slug: str = "triage", **fields: Any) -> Task:
    values = {"name": slug.title(), "state": "active", "fingerprint": uuid.uuid4().bytes * 2}
    row = Task(project_id=owner.id, slug=slug, **(values | fields))
    session.add(row)
    session.flush()
    return row


def run(session: Session, of: Task, judge: Upstream | None = None, **fields: Any) -> Run:
    values: dict[str, Any] = {
        "config": RunConfig().model_dump(mode="json"),
        "bars": dump_bars([JudgedBar()]),
        "base_model": "tiny",
        "judge_upstream_id": judge.id if judge else None,
    }
    row = Run(project_id=of.project_id, task_id=of.id, **(values | fields))
    session.add(row)
    session.flush()
    return row


def call(
    session: Session,
    of: Task,
    teacher: Upstream | None,
    text: str,
    answer: str | dict[str, Any],
    *,
    system: str = "Sort the ticket. Answer in JSON.",
    request: dict[str, Any] | None = None,
    **fields: Any,
) -> Call:
    """A stored call with its bodies, as the writer would have left it."""
    body = {"messages": [{"role": "system", "content": system}, {"role": "user", "content": text}]} | (request or {})
    message = answer if isinstance(answer, dict) else {"role": "assistant", "content": answer}
    response = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    stored = [jsontext.encode(part) for part in [*body["messages"], response]]
    digests = [digest_of(part) for part in stored[:-1]]
    plain = Codec()
    insert_blobs(session, of.project_id, {d: plain.compress(part) for d, part in zip(digests, stored, strict=False)})
    values: dict[str, Any] = {
        "id": new_id(),
        "served_by": "upstream",
        "upstream_id": teacher.id if teacher else None,
        "received_at": now(),
        "endpoint": "chat.completions",
        "alias": "frontier-1",
        "streamed": False,
        "status": 200,
        "complete": True,
        "trainable": True,
        "latency_ms": 1.0,
        "overhead_ms": 0.1,
        "prompt_tokens": 10,
        "cached_tokens": 0,
        "completion_tokens": 5,
        "reasoning_tokens": 0,
        "fingerprint": fingerprint(body),
        "input_hash": input_hash(body),
        "preview": text[:50],
        "answer_preview": "",
        "tags": {},
        "request": {key: value for key, value in body.items() if key != "messages"},
        "items": b"".join(digests),
        "response": plain.compress(stored[-1]),
    }
    if not session.info.get("partitions"):
        ensure_partitions(session)
        session.info["partitions"] = True
    row = Call(project_id=of.project_id, **({"task_id": of.id} | values | fields))
    session.add(row)
    return row
