"""How answers reach the client's socket, seen by a client that reads bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn

from gateway.proxy.server import Protocol

Headers = list[tuple[bytes, bytes]]


class App:
    """Answers as a test tells it; `written` is what went to sockets, write by write."""

    def __init__(self) -> None:
        self.headers: Headers = [(b"content-length", b"2")]
        self.pieces: list[bytes] = [b"ok"]
        self.status = 200
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.bodies: list[bytes] = []
        self.written: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await self.go_on.wait()
        for number, piece in enumerate(self.pieces, 1):
            await send({"type": "http.response.body", "body": piece, "more_body": number < len(self.pieces)})


@asynccontextmanager
async def serving(app: App) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    class Watched(Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(_Written(transport, app.written))

    config = uvicorn.Config(app, port=0, http=Watched, lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 (uvicorn has no event for it)
        await asyncio.sleep(0.01)
    reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
    try:
        async with asyncio.timeout(10):
            yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task


class _Written:
    def __init__(self, transport: Any, written: list[bytes]) -> None:
        self._transport, self._written = transport, written

    def write(self, data: bytes) -> None:
        self._written.append(bytes(data))
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


ASK = b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


async def test_head_and_body_are_one_write_and_the_connection_stays() -> None:
    app = App()
    async with serving(app) as (reader, writer):
        for _ in range(2):
            writer.write(ASK)
            assert await reader.readexactly(40) == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    assert len(app.written) == 2
    assert app.bodies == [b"{}", b"{}"]


async def test_the_head_of_a_stream_does_not_wait_for_its_first_piece() -> None:
    app = App()
    app.headers, app.pieces = [(b"content-type", b"text/event-stream")], [b"data: 1\n\n", b"", b"data: 2\n\n"]
    app.go_on.clear()
    async with serving(app) as (reader, writer):
        writer.write(ASK)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head == b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        app.go_on.set()
        rest = await reader.readuntil(b"0\r\n\r\n")
        assert rest == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
    assert app.written[-1].endswith(b"0\r\n\r\n")
    assert len(app.written) == 3, "the last piece and the end are one write"


async def test_two_requests_at_once_are_answered_in_turn() -> None:
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(ASK + ASK.replace(b"{}", b"[]"))
        await reader.readexactly(80)
    assert app.bodies == [b"{}", b"[]"]


@pytest.mark.parametrize(
    "ask",
    [
        ASK.replace(b"HTTP/1.1", b"HTTP/1.0"),
        ASK.replace(b"host: x", b"host: x\r\nconnection: close"),
    ],
)
async def test_a_client_that_wants_the_connection_closed(ask: bytes) -> None:
    async with serving(App()) as (reader, writer):
        writer.write(ask)
        assert b"connection: close\r\n" in await reader.read()


async def test_a_client_of_http_1_0_gets_a_stream_without_chunks() -> None:
    app = App()
    app.headers, app.pieces = [], [b"data: 1\n\n", b"", b"data: 2\n\n"]
    async with serving(app) as (reader, writer):
        writer.write(ASK.replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body == b"data: 1\n\ndata: 2\n\n"


async def test_no_body_where_none_may_be() -> None:
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        app.headers, app.status, app.pieces = [], 204, [b""]
        writer.write(ASK)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 204 No Content\r\n\r\n"
        writer.write(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 204 No Content\r\n\r\n"


async def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async with serving(App()) as (reader, writer):
        head, _, body = ASK.replace(b"host: x", b"host: x\r\nexpect: 100-continue").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        await reader.readexactly(40)


@pytest.mark.parametrize(
    ("headers", "pieces"),
    [
        ([(b"x", b"a\r\nset-cookie: b"), (b"content-length", b"2")], [b"ok"]),
        ([(b"x\n", b"a"), (b"content-length", b"2")], [b"ok"]),
        ([(b"content-length", b"2")], [b"okay"]),
        ([(b"content-length", b"2")], [b"o"]),
    ],
    ids=["split-value", "split-name", "too-long", "too-short"],
)
async def test_an_answer_that_would_confuse_the_client_cuts_the_connection(
    headers: Headers, pieces: list[bytes]
) -> None:
    app = App()
    app.headers, app.pieces = headers, pieces
    async with serving(app) as (reader, writer):
        writer.write(ASK)
        assert b"set-cookie" not in await reader.read()
