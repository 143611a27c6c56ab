"""What the tests of the data plane stand on: a scripted upstream, a gateway over a real port, rows to route by."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import msgspec
import uvicorn
from aiohttp import web
from sqlalchemy import select

from gateway.app import Gateway, create_app
from gateway.capture.writer import Writer
from gateway.core.clock import now
from gateway.core.db import session_scope
from gateway.core.ids import new_id
from gateway.core.secretbox import seal
from gateway.core.settings import settings
from gateway.keys.service import create_key
from gateway.models import (
    Call,
    Deployment,
    LedgerEntry,
    Price,
    Project,
    Route,
    RouteRevision,
    Student,
    Task,
    Upstream,
)
from gateway.proxy.server import Protocol
from gateway.tasks.fingerprint import fingerprint

UPSTREAM_KEY = "sk-upstream-secret"
ALIAS = "gpt-4o"
SYSTEM = "You sort tickets. Answer in one word."


def until(check: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Waits until `check` gives something true, and returns it."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found


@dataclass
class Seen:
    """A request as the upstream got it."""

    path: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass
class Reply:
    """What the upstream says: `pieces` are written one by one; a callable among them is awaited instead."""

    pieces: Sequence[bytes | Callable[[], Awaitable[Any]]]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    chunked: bool = False
    cut: bool = False


def chat_body(content: str = "billing", model: str = "gpt-4o-2024-08-06", **message: Any) -> bytes:
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24},
    }
    return msgspec.json.encode(answer)


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else msgspec.json.encode(value)) + b"\n\n"


def chunk(delta: dict[str, Any], finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        **fields,
    }


USAGE_CHUNK = chunk({}) | {
    "choices": [],
    "usage": {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24},
}
DONE = event(b"[DONE]")


def stream_events(*words: str, usage: bool = True) -> list[bytes]:
    chunks = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": w}) for w in words), chunk({}, "stop")]
    return [event(c) for c in chunks] + ([event(USAGE_CHUNK)] if usage else []) + [DONE]


SSE = {"content-type": "text/event-stream; charset=utf-8"}


def streamed(*pieces: bytes | Callable[[], Awaitable[Any]], cut: bool = False, **headers: str) -> Reply:
    return Reply(pieces, headers=SSE | headers, chunked=True, cut=cut)


class MockUpstream:
    """An upstream in a thread of its own. `reply` says what it answers; `seen` what it was asked."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.reply: Reply | Callable[[Seen], Reply] = Reply([chat_body()])
        self.hung_up = threading.Event()
        self.loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def _run(self) -> None:
        self.loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2, auto_decompress=False)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self._ready.set()
        await self._stopping.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = [(n.decode(), v.decode(errors="surrogateescape")) for n, v in request.raw_headers]
        self.seen.append(Seen(request.rel_url.raw_path, request.rel_url.raw_query_string, headers, body))
        reply = self.reply(self.seen[-1]) if callable(self.reply) else self.reply
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        if reply.chunked:
            response.enable_chunked_encoding()
        elif "content-length" not in reply.headers:
            response.content_length = sum(len(p) for p in reply.pieces if isinstance(p, bytes))
        try:
            if reply.pieces and callable(reply.pieces[0]):
                await reply.pieces[0]()
            await response.prepare(request)
            for piece in reply.pieces:
                if isinstance(piece, bytes):
                    await response.write(piece)
                elif piece is not reply.pieces[0]:
                    await piece()
            if reply.cut:
                assert request.transport is not None
                request.transport.abort()
            else:
                await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up.set()
            raise
        return response


def pause(seconds: float) -> Callable[[], Awaitable[None]]:
    return lambda: asyncio.sleep(seconds)


@contextlib.contextmanager
def running_gateway() -> Iterator[tuple[str, Gateway]]:
    """A gateway of this process on a free port, with the settings of the environment."""
    app = create_app()
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_config=None, http=Protocol, access_log=False, server_header=False,
                       date_header=False, proxy_headers=False, timeout_graceful_shutdown=1)
    )  # fmt: skip
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", app
    finally:
        server.should_exit = True
        thread.join(10)


@dataclass
class Rows:
    """What was put into the database."""

    project_id: UUID
    upstream_id: UUID
    key: str
    key_id: UUID


def seed(base_url: str, *, name: str = "shop", alias: str = ALIAS, capture: str = "full", **upstream: Any) -> Rows:
    """A project with a key, an upstream with a price, and a route for `alias`."""
    with session_scope() as session:
        project = Project(name=name)
        session.add(project)
        session.flush()
        fields = {"kind": "openai", "base_url": base_url, "credential": seal(UPSTREAM_KEY), "model": None} | upstream
        row = Upstream(project_id=project.id, name=f"{name}-frontier", **fields)
        session.add(row)
        session.flush()
        session.add(Route(project_id=project.id, alias=alias, upstream_id=row.id))
        session.add(price(project.id, upstream_id=row.id))
        key, secret = create_key(session, project.id, "app", capture)
        return Rows(project.id, row.id, secret, key.id)


def price(project_id: UUID, per_mtok: str = "2.5", **seller: UUID) -> Price:
    return Price(
        project_id=project_id, input_per_mtok=Decimal(per_mtok), cached_input_per_mtok=Decimal(per_mtok) / 2,
        output_per_mtok=Decimal(per_mtok) * 4, source="test", effective_from=now(), **seller,
    )  # fmt: skip


def request_body(text: str = "My invoice is wrong", system: str | None = SYSTEM, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}] if system else []
    return {"model": ALIAS, "messages": [*messages, {"role": "user", "content": text}], **fields}


def add_student(rows: Rows, engine_url: str | None, *, share: float = 1.0, stage: str = "live", **manifest: Any) -> str:
    """A task recognised by SYSTEM's fingerprint, and a route revision that hands it to a student."""
    shape = fingerprint(request_body(response_format=manifest.get("response_format")))
    assert shape is not None
    fields = {"fingerprint": shape.hex(), "context_length": 2048, "max_new_tokens": 64, "tools": False} | manifest
    with session_scope() as session:
        task = Task(project_id=rows.project_id, slug="tickets", name="Tickets", fingerprint=shape, state="active")
        session.add(task)
        session.flush()
        student = Student(
            project_id=rows.project_id, task_id=task.id, run_id=new_id(), checkpoint_id=new_id(),
            evaluation_id=new_id(), name="tickets-1", path="tickets-1", manifest=fields,
        )  # fmt: skip
        route = Route(project_id=rows.project_id, alias=ALIAS, task_id=task.id, upstream_id=rows.upstream_id)
        session.add_all([student, route])
        session.flush()
        deployment = Deployment(
            project_id=rows.project_id, student_id=student.id, state="ready" if engine_url else "failed",
            base_url=engine_url,
        )  # fmt: skip
        session.add_all([deployment, price(rows.project_id, "0.1", student_id=student.id)])
        session.flush()
        revision = RouteRevision(
            project_id=rows.project_id, route_id=route.id, number=7, stage=stage, share=share, student_id=student.id,
            deployment_id=deployment.id, evaluation_id=student.evaluation_id, reason="test",
        )  # fmt: skip
        session.add(revision)
        session.flush()
        route.revision_id = revision.id
        return student.name


def drain(folder: Path | None = None) -> None:
    """Stores everything that is spooled now."""
    writer = Writer(folder or settings().spool_dir)
    while writer.advance():
        pass


def stored_calls() -> list[Call]:
    """Every call in the database once the spool is stored, oldest first."""
    drain()
    with session_scope() as session:
        return list(session.scalars(select(Call).order_by(Call.id)))


def charges() -> list[LedgerEntry]:
    with session_scope() as session:
        return list(session.scalars(select(LedgerEntry).order_by(LedgerEntry.id)))


class World:
    """A gateway, an upstream behind it, and a project's key."""

    def __init__(self, url: str, app: Gateway, upstream: MockUpstream, rows: Rows) -> None:
        self.url = url
        self.app = app
        self.upstream = upstream
        self.rows = rows
        self.client = httpx.Client(base_url=url, timeout=20, headers={"authorization": f"Bearer {rows.key}"})

    def post(self, body: dict[str, Any] | bytes, path: str = "/v1/chat/completions", **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.client.post(path, content=content, headers={"content-type": "application/json"} | headers)

    def refresh(self) -> None:
        """Waits until the gateway knows the rows of this moment."""
        done = threading.Event()

        async def look() -> None:
            await self.app.snapshots.refresh()
            done.set()

        task = self.app.snapshots._task
        assert task is not None
        asyncio.run_coroutine_threadsafe(look(), task.get_loop())
        assert done.wait(10)


async def collect(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])
