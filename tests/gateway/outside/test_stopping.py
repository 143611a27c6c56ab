"""A gateway that is told to stop ends what it has begun, for as long as it may, and records it all."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest

from gateway.core.settings import read_or_create_secret
from tests.gateway.outside.processes import Connection, GatewayProcess
from tests.gateway.world import MockUpstream, Rows, request_body, seed, stored_calls, stream_events, streamed, until

ASK = msgspec.json.encode(request_body(stream=True))


@pytest.fixture
def rows(database: str, upstream: MockUpstream) -> Rows:
    return seed(upstream.base_url)


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_stream_under_way_ends_whole_while_new_connections_are_refused(
    rows: Rows, upstream: MockUpstream, home: Path
) -> None:
    go_on = asyncio.Event()
    first, *events = stream_events("bil", "ling")
    upstream.reply = streamed(first, go_on.wait, *events)
    with GatewayProcess(home / "log") as gateway:
        connection = Connection(gateway.port)
        connection.ask(rows.key, ASK)
        connection.read_until(b"assistant")
        gateway.terminate()
        until(lambda: refused(gateway.port))
        assert gateway.process.poll() is None
        upstream.loop.call_soon_threadsafe(go_on.set)
        answer = connection.rest()
        assert gateway.process.wait(20) == 0, gateway.said()
    assert answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    [call] = stored_calls()
    assert (call.complete, call.error, call.answer_preview) == (True, None, "billing")


def test_what_outlasts_the_grace_is_cut_and_recorded(rows: Rows, upstream: MockUpstream, home: Path) -> None:
    first, *events = stream_events("never")
    upstream.reply = streamed(first, asyncio.Event().wait, *events)
    with GatewayProcess(home / "log", STEPDOWN_GRACE_S="1") as gateway:
        connection = Connection(gateway.port)
        connection.ask(rows.key, ASK)
        connection.read_until(b"assistant")
        gateway.terminate()
        answer = connection.rest()
        assert gateway.process.wait(20) == 0, gateway.said()
        assert f"call {stored_calls()[0].id}: 200 gateway_shutdown" in gateway.said()
    assert not answer.endswith(b"0\r\n\r\n")
    [call] = stored_calls()
    assert (call.complete, call.error, call.status) == (False, "gateway_shutdown", 200)


def test_nothing_to_end_is_a_quick_and_good_end(rows: Rows, home: Path) -> None:
    with GatewayProcess(home / "log") as gateway:
        gateway.terminate()
        assert gateway.process.wait(20) == 0, gateway.said()


def test_an_open_dashboard_holds_up_nothing(rows: Rows, home: Path) -> None:
    with GatewayProcess(home / "log") as gateway:
        token = read_or_create_secret(home / "secrets" / "admin.token")
        connection = Connection(gateway.port)
        head = f"GET /api/projects/{rows.project_id}/calls/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        connection.socket.sendall(f"{head}authorization: Bearer {token}\r\n\r\n".encode())
        connection.read_until(b": connected")
        gateway.terminate()
        assert connection.rest().endswith(b"0\r\n\r\n")
        assert gateway.process.wait(20) == 0, gateway.said()
