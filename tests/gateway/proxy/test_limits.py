"""Limits: what is asked again and what never is, how long anything may take, how many calls and connections at once."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import msgspec
import pytest
from sqlalchemy import update

from gateway.core.db import session_scope
from gateway.keys.service import change_key
from gateway.models import Upstream
from gateway.proxy import upstream as asking
from gateway.proxy.client import UpstreamClient, endpoint
from gateway.proxy.http1 import CannotConnect
from gateway.proxy.places import Places
from gateway.proxy.resting import Resting
from tests.gateway.proxy.test_errors import refused
from tests.gateway.world import (
    Reply,
    World,
    chat_body,
    pause,
    request_body,
    stored_calls,
    stream_events,
    streamed,
    until,
)

WITH_USAGE = {"stream_options": {"include_usage": True}}
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(chat_body()),
    chat_body(),
)


def moved(world: World, base_url: str) -> None:
    """The route's upstream is elsewhere from now on."""
    with session_scope() as session:
        session.execute(update(Upstream).values(base_url=base_url))
    world.refresh()


@contextmanager
def server(*says: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers its n-th request, on whatever connection, with the n-th of `says`; b"" hangs up. Its base
    URL, and the requests that it saw."""
    seen: list[bytes] = []
    left = list(says)

    def serve() -> None:
        while left:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while left:
                    request = connection.recv(1 << 16)
                    if not request:
                        break
                    seen.append(request)
                    answer = left.pop(0)
                    if not answer:
                        break
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", seen


def test_a_connection_that_could_not_be_made_is_tried_once_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    connect = UpstreamClient._connect

    async def refused_at_first(self, origin):
        tried.append(origin)
        if len(tried) == 1:
            raise CannotConnect("refused")
        return await connect(self, origin)

    monkeypatch.setattr(UpstreamClient, "_connect", refused_at_first)
    assert world.post(request_body()).content == chat_body()
    assert (len(tried), len(world.upstream.seen)) == (2, 1)


def test_but_only_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    async def never(self, origin):
        tried.append(origin)
        raise CannotConnect("refused")

    monkeypatch.setattr(UpstreamClient, "_connect", never)
    monkeypatch.setattr(asking, "_PAUSE_S", (0.0, 0.0))
    refused(world.post(request_body()), 502, "upstream_unreachable", "refused", kind="server_error")
    assert len(tried) == 2


@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_a_request_that_may_have_run_is_repeated_only_with_an_idempotency_key(world: World, used: bool) -> None:
    """A connection that was used before and is closed at the wrong moment is no exception: it may have run."""
    before = [ANSWER] if used else []
    with server(*before, b"", *before, b"", ANSWER) as (base_url, seen):
        moved(world, base_url)
        for _ in before:
            assert world.post(request_body()).content == chat_body()
        refused(world.post(request_body()), 502, "upstream_broken", "may have run", kind="server_error")
        assert len(seen) == 1 + len(before), "sent once"
        for _ in before:
            assert world.post(request_body()).content == chat_body()
        answer = world.post(request_body(), **{"idempotency-key": "k-1"})
        assert answer.content == chat_body()
        first, second = seen[-2:]
        assert first == second
        assert b"idempotency-key: k-1" in first
    assert stored_calls()[-1].status == 200


def test_a_question_is_repeated_where_the_connection_was_stale(world: World) -> None:
    models = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    with server(models, b"", models) as (base_url, seen):
        moved(world, base_url)
        assert world.client.get("/v1/responses/resp_1").content == b"{}"
        assert world.client.get("/v1/responses/resp_1").content == b"{}"
        assert len(seen) == 3


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch, database: str, request: pytest.FixtureRequest) -> Callable[..., World]:
    """A world with other settings."""

    def make(**settings: str) -> World:
        for name, value in settings.items():
            monkeypatch.setenv(f"STEPDOWN_{name.upper()}", value)
        made: World = request.getfixturevalue("world")
        return made

    return make


def test_silence_in_the_middle_of_an_answer(hasty: Callable[..., World]) -> None:
    world = hasty(idle_timeout_s="0.2")
    length = {"content-type": "application/json", "content-length": "999"}
    world.upstream.reply = Reply([b'{"id":', pause(20)], headers=length)
    refused(world.post(request_body()), 504, "upstream_idle_timeout", "STEPDOWN_IDLE_TIMEOUT_S", kind="server_error")
    world.upstream.reply = streamed(stream_events("a")[0], pause(20))
    with pytest.raises(httpx.RemoteProtocolError):
        world.post(request_body(stream=True))
    assert stored_calls()[-1].error.startswith("upstream_idle_timeout")


def test_a_client_that_reads_slowly_is_not_the_upstreams_silence(hasty: Callable[..., World]) -> None:
    world = hasty(idle_timeout_s="0.2")
    pieces = [b"data: " + b"x" * 500_000 + b"\n\n"] * 40
    world.upstream.reply = streamed(*pieces)
    watches = world.app._relay.watchman._watches
    with world.client.stream("POST", "/v1/chat/completions", json=request_body(stream=True, **WITH_USAGE)) as answer:
        until(lambda: any(watch.sending for watch in watches))
        stuck = next(iter(watches))
        begun = stuck.deadline
        until(lambda: stuck.deadline > begun + 0.5)  # far beyond the limit
        assert b"".join(answer.iter_raw()) == b"".join(pieces)


def test_a_call_has_a_time_limit_all_told(hasty: Callable[..., World]) -> None:
    world = hasty(total_timeout_s="0.3")
    world.upstream.reply = Reply([pause(20), chat_body()])
    refused(world.post(request_body()), 504, "upstream_total_timeout", "STEPDOWN_TOTAL_TIMEOUT_S", kind="server_error")
    assert world.upstream.hung_up.wait(5)

    async def never_silent() -> None:
        await asyncio.sleep(0.02)

    world.upstream.reply = streamed(b": ping\n\n", *[never_silent, b": ping\n\n"] * 500)
    with pytest.raises(httpx.RemoteProtocolError):
        world.post(request_body(stream=True))
    call = stored_calls()[-1]
    assert (call.error or "").startswith("upstream_total_timeout")
    assert (call.complete, call.trainable) == (False, False)


def test_a_full_pool_says_so(hasty: Callable[..., World]) -> None:
    world = hasty(upstream_connections="2", connect_timeout_s="0.3")
    go = threading.Event()

    async def until_told() -> None:
        await asyncio.to_thread(go.wait, 10)

    world.upstream.reply = Reply([until_told, chat_body()])
    with ThreadPoolExecutor(3) as pool:
        under_way = [pool.submit(world.post, request_body()) for _ in range(2)]
        until(lambda: len(world.upstream.seen) == 2)
        full = world.post(request_body())
        refused(full, 504, "upstream_connections_busy", "2 connections", "STEPDOWN_UPSTREAM_CONNECTIONS",
                kind="server_error")  # fmt: skip
        go.set()
        assert [each.result().status_code for each in under_way] == [200, 200]
    assert world.post(request_body()).status_code == 200


def test_who_waits_for_a_connection_gets_the_one_that_becomes_free(hasty: Callable[..., World]) -> None:
    world = hasty(upstream_connections="3")
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda i: world.post(request_body(str(i))).status_code, range(60)))
    assert answers == [200] * 60
    assert len({seen.header("host") for seen in world.upstream.seen}) == 1


async def test_a_place_meant_for_somebody_who_left_goes_to_the_next() -> None:
    places, origin = Places(1), ("u", 443, True)
    assert [places.take(origin), places.take(origin), places.take(("v", 443, True))] == [True, False, True]
    left, stays = asyncio.ensure_future(places.freed(origin)), asyncio.ensure_future(places.freed(origin))
    await asyncio.sleep(0)
    places.give(origin)
    left.cancel()
    async with asyncio.timeout(5):
        await stays
    assert places.take(origin)


async def test_a_connection_that_is_closed_as_it_is_made_keeps_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def closed(*given, **options):
        transport, connection = await connect(*given, **options)
        transport.abort()
        await asyncio.sleep(0)
        assert connection._gone
        return transport, connection

    client = UpstreamClient(5.0, 1)
    async with await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0) as listener:
        address = endpoint(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", "x", "")
        monkeypatch.setattr(loop, "create_connection", closed)
        for _ in range(2):
            with pytest.raises(CannotConnect, match="as soon as it was made"):
                await client.ask(address, [], b"{}")
    assert client._places.take((address.host, address.port, address.tls))
    assert not client._origin_of


def test_a_keys_calls_under_way_are_counted(world: World) -> None:
    go = threading.Event()

    async def until_told() -> None:
        await asyncio.to_thread(go.wait, 10)

    def limit(most: int | None) -> None:
        with session_scope() as session:
            change_key(session, world.rows.project_id, world.rows.key_id, max_concurrent=most)
        world.refresh()

    limit(2)
    world.upstream.reply = Reply([until_told, chat_body()])
    with ThreadPoolExecutor(3) as pool:
        under_way = [pool.submit(world.post, request_body()) for _ in range(2)]
        until(lambda: len(world.upstream.seen) == 2)
        answer = world.post(request_body())
        refused(answer, 429, "concurrency_limit", "2 calls", "max_concurrent", kind="rate_limit_error")
        assert answer.headers["retry-after"] == "1"
        limit(None)
        unlimited = pool.submit(world.post, request_body())
        until(lambda: len(world.upstream.seen) == 3)
        limit(2)
        go.set()
        assert [each.result().status_code for each in (*under_way, unlimited)] == [200] * 3
    assert [world.post(request_body()).status_code for _ in range(3)] == [200] * 3
    world.upstream.reply = Reply([b"{}"], status=503)
    assert [world.post(request_body()).status_code for _ in range(3)] == [503] * 3, "a failure gives its place back too"
    assert 'stepdown_refused_total{code="concurrency_limit"}' in world.client.get("/metrics").text


def test_calls_that_were_under_way_do_not_lengthen_a_rest() -> None:
    clock = [0.0]
    resting = Resting(3, 15.0, clock=lambda: clock[0])
    assert [resting.failed("a") for _ in range(6)] == [None, None, 5.0, None, None, None]
    assert resting.rests("a")
    clock[0] = 5.0
    assert [resting.rests("a"), resting.rests("a")] == [False, True]
    assert resting.failed("a") == 15.0
    clock[0] = 20.0
    assert [resting.rests("a"), resting.rests("a")] == [False, True]
    clock[0] = 35.0
    assert not resting.rests("a"), "the call that tried has not come back: another one tries"
    assert [resting.failed("a"), resting.answered("a"), resting.in_trouble("a")] == [60.0, True, False]
    assert resting.failed("a") is None
    assert not resting.answered("a"), "one failure is no trouble"
    assert [resting.failed("a"), resting.failed("a"), resting.failed("a")] == [None, None, 5.0]


def test_bodies_of_exactly_the_limit_pass_however_they_come(hasty: Callable[..., World]) -> None:
    world = hasty(max_body_mb="1")
    body = msgspec.json.encode(request_body("x" * 900_000))
    body = body[:-1] + b" " * (1_000_000 - len(body)) + b"}"
    headers = {"content-type": "application/json"}

    def pieces(data: bytes) -> Iterator[bytes]:
        yield from (data[i : i + 65_536] for i in range(0, len(data), 65_536))

    for content in (body, pieces(body)):
        assert world.client.post("/v1/chat/completions", content=content, headers=headers).status_code == 200
    assert [seen.body for seen in world.upstream.seen] == [body, body]
    for content in (body + b" ", pieces(body + b" ")):
        answer = world.client.post("/v1/chat/completions", content=content, headers=headers)
        refused(answer, 413, "body_too_large", "1 MB")


def test_a_client_that_asks_before_it_sends_a_good_body_is_told_to(world: World) -> None:
    host, port = world.url.removeprefix("http://").split(":")
    body = msgspec.json.encode(request_body())
    with socket.create_connection((host, int(port)), timeout=10) as client:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {world.rows.key}\r\n"
            f"content-length: {len(body)}\r\nexpect: 100-continue\r\n\r\n"
        )
        client.sendall(head.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 100 ")
        client.sendall(body)
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert world.upstream.seen[0].header("expect") is None
