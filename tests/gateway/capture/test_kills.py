"""Nothing that reached a client is lost: gateway and PostgreSQL killed with -9, a full disk."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from gateway.core.embedded import Postgres, running
from gateway.core.migrate import upgrade_head
from gateway.core.ports import free_port
from tests.conftest import _FAST, _forget
from tests.gateway.world import (
    MockUpstream,
    charges,
    chat_body,
    pause,
    request_body,
    seed,
    stored_calls,
    stream_events,
    streamed,
    until,
)


@contextmanager
def gateway_process(
    prepare: Callable[[int], None] | None = None,
) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway.app"], env=os.environ | {"STEPDOWN_PORT": str(port)}, stderr=subprocess.DEVNULL
    )
    if prepare is not None:
        prepare(process.pid)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:

        def ready() -> bool:
            try:
                return client.get("/readyz").status_code == 200
            except httpx.TransportError:
                assert process.poll() is None
                return False

        try:
            until(ready, 20)
            yield process, client
        finally:
            process.kill()
            process.wait()


def ask(client: httpx.Client, key: str, **fields: object) -> httpx.Response:
    return client.post("/v1/chat/completions", json=request_body(**fields), headers={"authorization": f"Bearer {key}"})


def test_kill_9_of_the_gateway_after_the_last_byte(database: str, upstream: MockUpstream) -> None:
    rows = seed(upstream.base_url)
    answered = []
    with gateway_process() as (process, client):
        for _ in range(20):
            answered.append(ask(client, rows.key).headers["x-stepdown-request-id"])
        # The upstream keeps its connection open behind [DONE]: only the record made before it can save this call.
        upstream.reply = streamed(*stream_events("a"), pause(20))
        with client.stream(
            "POST", "/v1/chat/completions", json=request_body(stream=True),
            headers={"authorization": f"Bearer {rows.key}"},
        ) as answer:  # fmt: skip
            answered.append(answer.headers["x-stepdown-request-id"])
            for line in answer.iter_lines():
                if line == "data: [DONE]":
                    os.kill(process.pid, signal.SIGKILL)
                    break
    calls = stored_calls()
    assert [str(c.id) for c in calls] == answered
    assert all(c.trainable for c in calls)
    assert [c.source_id for c in charges()] == [c.id for c in calls]


def test_calls_are_served_while_postgres_is_away_and_stored_when_it_is_back(
    home: Path, upstream: MockUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres = Postgres(home, _FAST)
    with running(postgres, home / "postgres.log") as server:
        monkeypatch.setenv("DATABASE_URL", postgres.url)
        _forget()
        upgrade_head()
        rows = seed(upstream.base_url)
        with gateway_process() as (_, client):
            writer = subprocess.Popen([sys.executable, "-m", "gateway.capture.writer"], stderr=subprocess.DEVNULL)
            try:
                answered = [ask(client, rows.key).headers["x-stepdown-request-id"]]
                until(lambda: not client.get("/readyz").json()["waiting_bytes"], 20)
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
                for _ in range(20):
                    answer = ask(client, rows.key)
                    assert answer.content == chat_body()
                    answered.append(answer.headers["x-stepdown-request-id"])
                until(lambda: "unreachable" in client.get("/readyz").json()["database"])
                until(lambda: client.get("/readyz").json()["writer"].startswith("waiting"))
                assert client.get("/readyz").status_code == 200, "it still answers calls"
                again = Postgres(home, _FAST)
                monkeypatch.setattr(again, "port", 0)
                with running(again, home / "postgres.log"):
                    assert again.url == postgres.url, "the port is remembered"
                    until(lambda: client.get("/readyz").json()["database"] == "reachable")
                    until(lambda: client.get("/readyz").json()["writer"] == "working")
                    until(lambda: not client.get("/readyz").json()["waiting_bytes"])
                    _forget()
                    assert [str(c.id) for c in stored_calls()] == answered
                    assert len(charges()) == len(answered)
                    _forget()
            finally:
                writer.kill()
                writer.wait()


def test_with_a_full_disk_calls_are_still_served_and_it_is_said(database: str, upstream: MockUpstream) -> None:
    rows = seed(upstream.base_url)
    with gateway_process(lambda pid: resource.prlimit(pid, resource.RLIMIT_FSIZE, (8000, 8000))) as (_, client):
        for _ in range(12):
            assert ask(client, rows.key, user="x" * 1000).content == chat_body()
        state = client.get("/readyz").json()
        assert state["capture"].startswith("failing: ")
        assert f"not captured: {state['capture'].removeprefix('failing: ')}; {state['not_captured']} calls" in " ".join(
            state["problems"]
        )
        lost = re.search(r"^stepdown_capture_lost_total (\d+)", client.get("/metrics").text, re.M)
    assert lost is not None
    assert int(lost[1]) == state["not_captured"]
    calls = stored_calls()
    assert len(calls) == 12 - int(lost[1])
    assert len(calls) > 2
    assert all(c.trainable for c in calls)
