"""Several gateways on one port: each call has one of them, and what one counts or suffers is not the others' matter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import msgspec
import pytest

from gateway.core import workers
from gateway.core.metrics import REFUSED
from gateway.core.ports import free_port
from gateway.core.settings import settings
from gateway.core.workers import Family, Note, Worker
from gateway.supervisor.services import stages
from tests.gateway.outside.processes import Connection, GatewayProcess
from tests.gateway.outside.test_metrics import samples
from tests.gateway.world import MockUpstream, Rows, request_body, seed, stored_calls, stream_events, streamed, until

ASK = msgspec.json.encode(request_body(stream=True))
CALLS = ("stepdown_calls_total", (("served_by", "upstream"), ("status", "200")))


@pytest.fixture
def rows(database: str, upstream: MockUpstream) -> Rows:
    return seed(upstream.base_url)


@pytest.fixture
def pair(rows: Rows, home: Path) -> Iterator[list[GatewayProcess]]:
    port = free_port()
    with ExitStack() as stack:
        yield [stack.enter_context(started) for started in [worker(home, port, 1), worker(home, port, 2)]]


def worker(home: Path, port: int, number: int) -> GatewayProcess:
    return GatewayProcess(home / f"{number}.log", port, STEPDOWN_WORKERS="2", STEPDOWN_WORKER=str(number))


def connected(gateway: GatewayProcess) -> Connection:
    """A connection that the kernel gave to this one of them."""

    def tried() -> Connection | None:
        connection = Connection(gateway.port)
        connection.socket.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        connection.read_until(b"ok\n")
        connection.received = b""
        if gateway.serves(connection):
            return connection
        connection.close()
        return None

    found: Connection = until(tried, 30)
    return found


def counted(gateway: GatewayProcess) -> float:
    """How many calls there were, as this one of them says."""
    connection = connected(gateway)
    connection.socket.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    _, _, body = connection.rest().partition(b"\r\n\r\n")
    return samples(body.decode()).get(CALLS, 0)


def test_a_call_is_untouched_when_the_process_beside_it_is_killed(
    pair: list[GatewayProcess], rows: Rows, upstream: MockUpstream, home: Path
) -> None:
    go_on = asyncio.Event()
    first, *events = stream_events("bil", "ling")
    upstream.reply = streamed(first, go_on.wait, *events)
    lucky, doomed = connected(pair[0]), connected(pair[1])
    for connection in (lucky, doomed):
        connection.ask(rows.key, ASK)
        connection.read_until(b"assistant")
    pair[1].process.kill()
    assert b"[DONE]" not in doomed.rest()
    upstream.loop.call_soon_threadsafe(go_on.set)
    assert b"data: [DONE]\n\n" in lucky.read_until(b"0\r\n\r\n")
    assert httpx.get(f"{pair[0].url}/v1/models", headers={"authorization": f"Bearer {rows.key}"}).status_code == 200
    with worker(home, pair[1].port, 2) as again:
        connected(again).close()
    [call] = stored_calls()
    assert call.complete


def test_the_metrics_are_those_of_all_and_outlive_a_killed_one(
    pair: list[GatewayProcess], rows: Rows, home: Path
) -> None:
    for gateway, number in zip(pair, (3, 4), strict=True):
        connection = connected(gateway)
        for _ in range(number):
            connection.ask(rows.key, msgspec.json.encode(request_body()))
            connection.read_until(b"total_tokens")
            connection.received = b""
        connection.close()
    until(lambda: [counted(gateway) for gateway in pair] == [7, 7])
    pair[0].process.kill()
    pair[0].process.wait()
    assert counted(pair[1]) == 7
    with worker(home, pair[0].port, 1) as again:
        assert counted(again) == 7
    assert len(stored_calls()) == 7


def test_the_supervisor_runs_each_by_itself_and_waits_for_all(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPDOWN_WORKERS", "3")
    settings.cache_clear()
    stale = workers.note_path(settings().run_dir, 2)
    stale.parent.mkdir()
    stale.write_bytes(msgspec.msgpack.encode(Note(time.time(), True, [])))
    services = {service.name: service for service, _ in stages(settings(), home)[-1]}
    assert not stale.exists()
    assert list(services)[:3] == ["gateway 1", "gateway 2", "gateway 3"]
    second = services["gateway 2"]
    assert second.prepare().env == {"STEPDOWN_WORKER": "2", "STEPDOWN_WORKERS": "3"}
    assert not second.probe()
    told = Worker(settings().run_dir, 2)
    told.tell(ready=False)
    assert not second.probe()
    told.tell(ready=True)
    assert second.probe()
    assert not services["gateway 1"].probe()
    second.prepare()
    assert not second.probe(), "what was said before this start does not count"


def test_a_worker_goes_on_counting_where_the_one_before_was_killed(tmp_path: Path) -> None:
    REFUSED.labels("for_this_test").inc(2)

    def refused(text: bytes) -> float:
        return samples(text.decode())["stepdown_refused_total", (("code", "for_this_test"),)]

    Worker(tmp_path, 1).tell(ready=True)
    again = Worker(tmp_path, 1)
    assert refused(again.exposition(1)) == 4  # of this process, which counts it too, and of its note
    again.tell(ready=True)
    assert refused(again.exposition(1)) == 4
    other = Worker(tmp_path, 2)
    assert refused(other.exposition(2)) == 6


def test_gauges_of_one_that_died_are_forgotten_and_its_counts_are_not(tmp_path: Path) -> None:
    families = [
        Family("stepdown_calls_in_flight", "", "gauge", [("stepdown_calls_in_flight", {}, 7.0)]),
        Family("stepdown_made_up", "", "counter", [("stepdown_made_up_total", {}, 5.0)]),
    ]
    path = workers.note_path(tmp_path, 2)
    path.write_bytes(msgspec.msgpack.encode(Note(time.time(), True, families)))
    alive = samples(Worker(tmp_path, 1).exposition(2).decode())
    path.write_bytes(msgspec.msgpack.encode(Note(time.time() - 60, True, families)))
    dead = samples(Worker(tmp_path, 1).exposition(2).decode())
    assert alive["stepdown_calls_in_flight", ()] - dead["stepdown_calls_in_flight", ()] == 7
    assert alive["stepdown_made_up_total", ()] == dead["stepdown_made_up_total", ()] == 5


def test_of_gauges_that_all_see_alike_the_highest_counts() -> None:
    told = [[Family("stepdown_snapshot_age_seconds", "", "gauge", [("x", {}, age)])] for age in (0.5, 3.0, 1.0)]
    [family] = workers.merged(told)
    assert family.samples == [("x", {}, 3.0)]
