"""Our own HTTP/1.1 towards upstreams, against a server that sends exactly the bytes a test gives it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from gateway.proxy.client import KEEP_S, UpstreamClient, endpoint
from gateway.proxy.http1 import BrokenOff, CannotConnect, ConnectTimedOut

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """`connections` counts those it accepted, `requests` holds the heads it read."""

    def __init__(self, *answers: bytes, hang_up: bool = False) -> None:
        self.answers, self.hang_up = list(answers), hang_up
        self.connections = 0
        self.requests: list[bytes] = []
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head)
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                self.bodies.append(await reader.readexactly(int(lengths[0].split()[1])) if lengths else b"")
                writer.write(self.answers.pop(0))
                await writer.drain()
                if self.hang_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def talking(serve: Script) -> AsyncIterator[tuple[UpstreamClient, str]]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = UpstreamClient(2.0)
    client.start()
    port = server.sockets[0].getsockname()[1]
    try:
        yield client, f"http://127.0.0.1:{port}/v1"
    finally:
        await client.close()
        server.close()


async def none_left(client: UpstreamClient) -> None:
    """Waits until no connection is idle."""
    async with asyncio.timeout(5):
        while any(client._idle.values()):  # noqa: ASYNC110 (the client has no event for it, and needs none)
            await asyncio.sleep(0.01)


async def ask(client: UpstreamClient, url: str, body: bytes = b"{}") -> tuple[int, bytes]:
    answer = await client.ask(endpoint(url, "chat/completions", "a=1"), [(b"x-a", b"b")], body)
    try:
        return answer.status, await answer.read()
    finally:
        answer.close()


async def test_a_request_goes_out_as_given_and_its_connection_serves_the_next() -> None:
    server = Server(OK, OK, OK)
    async with talking(server.serve) as (client, url):
        for body in (b'{"n":1}', b"", b"x" * 3_000_000):
            assert await ask(client, url, body) == (200, b"ok")
    assert server.connections == 1
    assert server.bodies == [b'{"n":1}', b"", b"x" * 3_000_000]
    host = url.split("/")[2].encode()
    assert server.requests[0] == (
        b"POST /v1/chat/completions?a=1 HTTP/1.1\r\nhost: " + host + b"\r\nx-a: b\r\ncontent-length: 7\r\n\r\n"
    )
    assert b"content-length: 0\r\n" in server.requests[1], "a POST without a body says so"


async def test_calls_at_once_have_connections_of_their_own_and_share_them_later() -> None:
    server = Server(*[OK] * 6)
    async with talking(server.serve) as (client, url):
        await asyncio.gather(*(ask(client, url) for _ in range(3)))
        for _ in range(3):
            await ask(client, url)
    assert server.connections == 3


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nt: 1\r\n\r\n", b"abc"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", b"ab"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["chunks", "chunks-and-length", "informational", "no-content"],
)
async def test_answers_that_leave_the_connection_open(wire: bytes, body: bytes) -> None:
    server = Server(wire, OK)
    async with talking(server.serve) as (client, url):
        status, got = await ask(client, url)
        assert (status, got) == (204 if body == b"" else 200, body)
        assert await ask(client, url) == (200, b"ok")
    assert server.connections == 1


@pytest.mark.parametrize(
    ("wire", "hang_up"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", True),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 10\r\n\r\nto the end", False),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 10\r\n\r\nto the end", False),
    ],
    ids=["until-eof", "http-1.0", "close"],
)
async def test_answers_after_which_a_new_connection_is_made(wire: bytes, hang_up: bool) -> None:
    server = Server(wire, OK, hang_up=hang_up)
    async with talking(server.serve) as (client, url):
        assert await ask(client, url) == (200, b"to the end")
        assert await ask(client, url) == (200, b"ok")
    assert server.connections == 2


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "half-a-head", "short-body", "short-chunk", "bad-chunk", "no-http", "upgrade", "endless-header"],
)
async def test_what_is_no_whole_answer_is_broken_off(wire: bytes) -> None:
    server = Server(wire, hang_up=True)
    async with talking(server.serve) as (client, url):
        with pytest.raises(BrokenOff) as broken:
            await ask(client, url)
    assert not broken.value.stale, "it was a fresh connection"


async def test_a_used_connection_that_closes_without_a_byte_says_so() -> None:
    server = Server(OK, b"")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(server.requests) == 1:
            server.hang_up = True
        await server.serve(reader, writer)

    async with talking(serve) as (client, url):
        await ask(client, url)
        server.hang_up = True
        with pytest.raises(BrokenOff) as broken:
            await ask(client, url)
    assert broken.value.stale
    assert server.connections == 1


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    server = Server(OK, OK, hang_up=True)
    async with talking(server.serve) as (client, url):
        await ask(client, url)
        await none_left(client)
        assert await ask(client, url) == (200, b"ok")
    assert server.connections == 2


async def test_bytes_that_nobody_asked_for_cost_the_connection() -> None:
    server = Server(OK + OK.replace(b"ok", b"no"), OK)
    async with talking(server.serve) as (client, url):
        assert await ask(client, url) == (200, b"ok")
        assert await ask(client, url) == (200, b"ok")
    assert server.connections == 2


async def test_an_answer_that_is_left_before_its_end_closes_the_connection() -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n")
        await reader.read()
        await reader.read()
        closed.set()
        writer.close()

    async with talking(serve) as (client, url):
        answer = await client.ask(endpoint(url, "x", ""), [], b"")
        assert await answer.piece() == b"ab"
        answer.close()
        async with asyncio.timeout(5):
            await closed.wait()


async def test_waiting_that_is_cancelled_closes_the_connection() -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        closed.set()
        writer.close()

    async with talking(serve) as (client, url):
        task = asyncio.create_task(client.ask(endpoint(url, "x", ""), [], b""))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await closed.wait()


async def test_a_reader_that_is_slow_makes_the_upstream_wait() -> None:
    size, sent = 32_000_000, 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 100_000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000
        writer.close()

    async with talking(serve) as (client, url):
        answer = await client.ask(endpoint(url, "x", ""), [], b"")
        for _ in range(50):
            await asyncio.sleep(0.01)
        assert sent < size, "the whole answer must not pile up in memory"
        assert len(await answer.read()) == size
        answer.close()


async def test_addresses_that_cannot_be_reached() -> None:
    client = UpstreamClient(0.05)
    client.start()
    for base_url in ("http://127.0.0.1:1/v1", "ftp://x/v1", "no url", "http://[bad/v1"):
        with pytest.raises(CannotConnect):
            await client.ask(endpoint(base_url, "x", ""), [], b"")
    with pytest.raises(CannotConnect):
        await client.ask(endpoint("http://127.0.0.1:1/v1", "x", ""), [(b"authorization", b"Bearer a\r\nb: c")], b"")
    await client.close()


async def test_a_server_that_does_not_accept_runs_into_the_limit() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        client = UpstreamClient(0.05)
        address = endpoint(f"http://127.0.0.1:{full.getsockname()[1]}/v1", "x", "")
        asking = asyncio.gather(*(client.ask(address, [], b"") for _ in range(8)))
        with pytest.raises(ConnectTimedOut):
            await asking
        await client.close()


async def test_idle_connections_are_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(OK, OK)
    async with talking(server.serve) as (client, url):
        await ask(client, url)
        (idle,) = client._idle.values()
        idle[0].idle_since -= KEEP_S + 1
        client._sweep()
        await none_left(client)
        await ask(client, url)
    assert server.connections == 2
