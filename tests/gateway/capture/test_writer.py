"""The writer: each call and its charge exactly once, in one transaction, whatever comes in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from sqlalchemy import func, select

from gateway.capture import repository, status
from gateway.capture.bodies import load_request, load_response
from gateway.capture.pace import MOST_LAG_S, rest_s
from gateway.capture.partitions import Month, month_of
from gateway.capture.spool import Spool
from gateway.capture.writer import Writer
from gateway.core.db import session_scope
from gateway.core.ids import new_id
from gateway.core.settings import settings
from gateway.models import Blob, Call, LedgerEntry, Price, SpoolCursor, Task
from tests.gateway.capture.test_record import envelope
from tests.gateway.world import (
    Rows,
    charges,
    chat_body,
    drain,
    request_body,
    seed,
    stored_calls,
    stream_events,
    until,
)


@pytest.fixture
def rows(database: str) -> Rows:
    return seed("http://127.0.0.1:9/v1")


@pytest.fixture
def spool(rows: Rows) -> Any:
    made = Spool(settings().spool_dir)
    settings().spool_dir.mkdir(exist_ok=True)
    yield made
    made.close()


def put(spool: Spool, rows: Rows, body: dict[str, Any] | bytes | None = None, answer: bytes | None = None,
        **fields: Any) -> uuid.UUID:  # fmt: skip
    values = {"id": new_id(), "project_id": rows.project_id, "key_id": rows.key_id, "upstream_id": rows.upstream_id,
              "received_ns": int((datetime.now(UTC) + timedelta(seconds=1)).timestamp() * 1e9)} | fields  # fmt: skip
    body = request_body() if body is None else body
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    assert spool.append(envelope(**values), raw, [chat_body() if answer is None else answer])
    found: uuid.UUID = values["id"]
    return found


def count(of: Any) -> int:
    with session_scope() as session:
        return session.scalar(select(func.count()).select_from(of)) or 0


def test_a_call_is_stored_with_its_bodies_and_its_charge(spool: Spool, rows: Rows) -> None:
    body = request_body("hi", tools=[{"type": "function", "function": {"name": "f", "description": "d" * 900}}], seed=1)
    put(spool, rows, body)
    (call,) = stored_calls()
    with session_scope() as session:
        assert load_request(session, call) == body
        assert load_response(session, call) == json.loads(chat_body())
    assert (call.preview, call.answer_preview, call.finish_reason) == ("hi", "billing", "stop")
    assert (call.complete, call.trainable, call.error) == (True, True, None)
    assert (call.latency_ms, call.ttfb_ms, call.overhead_ms) == (3e-6, 2e-6, 1e-6)
    assert "messages" not in (call.request or {})
    # 20 tokens at 2.5 and 4 at 10 USD per million
    assert call.cost == Decimal("0.00009")
    (charge,) = charges()
    assert (charge.amount, charge.source_id, charge.call_id, charge.kind) == (call.cost, call.id, call.id, "call")
    assert charge.price["input_per_mtok"] == "2.5000000000"
    assert charge.usage == {"prompt": 20, "completion": 4, "cached": 0, "reasoning": 0}


def test_equal_messages_are_stored_once(spool: Spool, rows: Rows) -> None:
    for i in range(10):
        put(spool, rows, request_body(f"question {i}"))
    drain()
    assert count(Call) == 10
    assert count(Blob) == 11, "ten questions, one system prompt"


def test_cached_and_reasoning_tokens_are_charged_once(spool: Spool, rows: Rows) -> None:
    usage = {
        "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 80}, "completion_tokens_details": {"reasoning_tokens": 30},
    }  # fmt: skip
    put(spool, rows, answer=msgspec.json.encode(json.loads(chat_body()) | {"usage": usage}))
    (call,) = stored_calls()
    assert (call.prompt_tokens, call.cached_tokens, call.completion_tokens, call.reasoning_tokens) == (100, 80, 50, 30)
    assert call.cost == (20 * Decimal("2.5") + 80 * Decimal("1.25") + 50 * Decimal(10)) / 1_000_000


def test_the_price_is_the_one_in_force_when_the_call_was_made(spool: Spool, rows: Rows) -> None:
    def add(per_mtok: str, days: int, model: str | None = None) -> None:
        with session_scope() as session:
            session.add(
                Price(
                    project_id=rows.project_id, upstream_id=rows.upstream_id, model=model, source="test",
                    input_per_mtok=Decimal(per_mtok), cached_input_per_mtok=Decimal(0), output_per_mtok=Decimal(0),
                    effective_from=datetime.now(UTC) + timedelta(days=days),
                )
            )  # fmt: skip

    add("1", -10)
    add("1000", 10)
    add("7", -5, "gpt-other")
    old = int((datetime.now(UTC) - timedelta(days=2)).timestamp() * 1e9)
    put(spool, rows, received_ns=old)
    put(spool, rows, received_ns=old, alias="gpt-other")
    assert [c.cost for c in stored_calls()] == [Decimal("0.00002"), Decimal("0.00014")]
    add("99", -10)
    assert [c.amount for c in charges()] == [Decimal("0.00002"), Decimal("0.00014")], "a charge never changes"


def test_nothing_is_stored_twice_when_a_transaction_is_lost(
    spool: Spool, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        put(spool, rows)
    writer = Writer(settings().spool_dir)
    with monkeypatch.context() as patch:
        patch.setattr(repository, "move_cursor", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            writer.advance()
    assert count(Call) == count(LedgerEntry) == count(Blob) == 0, "rows without their cursor would come twice"
    drain()
    assert count(Call) == count(LedgerEntry) == 5


def test_a_commit_that_came_through_unseen_is_not_repeated(spool: Spool, rows: Rows) -> None:
    put(spool, rows)
    behind, ahead = Writer(settings().spool_dir), Writer(settings().spool_dir)
    behind._cursors = {}
    ahead.advance()
    with pytest.raises(Exception, match="no longer at 0"):
        behind.advance()
    put(spool, rows)
    drain()
    assert count(Call) == count(LedgerEntry) == 2


def writer_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "gateway.capture.writer"], stderr=subprocess.DEVNULL)


def test_kill_9_in_the_middle_of_batches(spool: Spool, rows: Rows) -> None:
    total = 2500
    for i in range(total):
        put(spool, rows, request_body(f"question {i}"))
    spool.close()
    for reached in (1, 1000):
        process = writer_process()
        until(lambda reached=reached: count(Call) >= reached, 30)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = count(Call)
    assert left < total, "the kills came too late to prove anything"
    assert count(LedgerEntry) == left
    process = writer_process()
    until(lambda: count(Call) == total and not list(settings().spool_dir.glob("*.spool")), 30)
    process.terminate()
    assert process.wait(10) == 0
    assert count(LedgerEntry) == total
    assert count(SpoolCursor) == 0
    with session_scope() as session:
        previews = set(session.scalars(select(Call.preview)))
    assert previews == {f"question {i}" for i in range(total)}


def test_one_bad_record_does_not_hold_up_the_rest(spool: Spool, rows: Rows) -> None:
    put(spool, rows)
    bad = put(spool, rows, project_id=new_id())
    put(spool, rows, b"\x00 no json", b"\xff\x00 neither")
    odd = b'"messages":[{"role":"user","content":"nul \\u0000 and \\ud800"}],"user":"\\u0000"'
    put(spool, rows, b'{"model":"a\\u0000b",' + odd + b"}")
    writer = Writer(settings().spool_dir)
    while writer.advance():
        pass
    calls = stored_calls()
    assert len(calls) == 3
    assert bad not in {c.id for c in calls}
    assert [c.trainable for c in calls] == [True, False, True]
    (kept,) = (settings().spool_dir / "rejected").iterdir()
    assert kept.stat().st_size > 100
    assert kept.stat().st_mode & 0o077 == 0
    with session_scope() as session:
        request = load_request(session, calls[2])
        response = load_response(session, calls[1])
    assert request is not None
    assert request["messages"][0]["content"] == "nul \0 and \ud800", "the body itself is kept as it was"
    assert set(response or {}) == {"unparsed"}


def test_listeners_hear_of_stored_calls(spool: Spool, rows: Rows, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as listener:
        listener.execute("listen stepdown_calls")
        put(spool, rows)
        drain()
        (heard,) = listener.notifies(timeout=5, stop_after=1)
    assert json.loads(heard.payload) == {"project_id": str(rows.project_id), "calls": 1}


def test_calls_of_any_month_find_a_partition(spool: Spool, rows: Rows) -> None:
    old = uuid.UUID(int=int(datetime(2025, 2, 28, 23, 59, 59, tzinfo=UTC).timestamp() * 1000) << 80 | 7 << 76 | 1)
    assert month_of(old) == Month(2025, 2)
    put(spool, rows, id=old)
    put(spool, rows)
    assert stored_calls()[0].id == old
    assert Month(2025, 12).shifted(1) == Month(2026, 1)
    low, high = Month(2025, 2).bounds
    assert low <= old < high


def test_a_recurring_prompt_becomes_a_suggested_task(spool: Spool, rows: Rows) -> None:
    system = "You are a support triage assistant for Acme. Today is 2026-01-0{}."
    for i in range(19):
        put(spool, rows, request_body("q", system.format(i % 9 + 1)))
    put(spool, rows, request_body("q", "Something else."))
    assert {c.task_id for c in stored_calls()} == {None}
    assert count(Task) == 0
    put(spool, rows, request_body("q", system.format(1)))
    put(spool, rows, request_body("q", system.format(2)))
    drain()
    with session_scope() as session:
        (task,) = session.scalars(select(Task)).all()
        assigned = session.scalar(select(func.count()).select_from(Call).where(Call.task_id == task.id))
    assert (task.state, assigned) == ("suggested", 21)
    assert "support-triage" in task.slug
    put(spool, rows, request_body("q", system.format(3)))
    assert stored_calls()[-1].task_id == task.id


def test_a_named_task_is_made_and_takes_its_prompt_along(spool: Spool, rows: Rows) -> None:
    put(spool, rows)
    put(spool, rows, task_slug="Ticket Triage!")
    put(spool, rows)
    put(spool, rows, request_body(system="Another prompt."), task_slug="ticket-triage")
    put(spool, rows, request_body(system="Another prompt."))
    calls = stored_calls()
    with session_scope() as session:
        (task,) = session.scalars(select(Task)).all()
    assert (task.slug, task.state, task.name) == ("ticket-triage", "active", "Ticket Triage!")
    assert [c.task_id == task.id for c in calls] == [True, True, True, True, False]


def test_streams_are_stored_as_one_answer(spool: Spool, rows: Rows) -> None:
    put(spool, rows, request_body(stream=True), b"".join(stream_events("a", "b")), streamed=True)
    (call,) = stored_calls()
    with session_scope() as session:
        response = load_response(session, call)
    assert response is not None
    assert response["choices"][0]["message"] == {"role": "assistant", "content": "ab"}


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_answers_that_were_stopped_are_whole_but_not_learned(spool: Spool, rows: Rows, reason: str) -> None:
    put(spool, rows, answer=chat_body().replace(b'"stop"', f'"{reason}"'.encode()))
    (call,) = stored_calls()
    assert (call.complete, call.trainable) == (True, False)


@pytest.mark.parametrize("fields", [{"cut": "client_hangup"}, {"status": 500}])
def test_an_answer_that_seems_whole_but_was_not_is_not_learned(
    spool: Spool, rows: Rows, fields: dict[str, Any]
) -> None:
    put(spool, rows, **fields)
    assert not stored_calls()[0].trainable


def test_an_empty_answer_is_not_learned(spool: Spool, rows: Rows) -> None:
    put(spool, rows, answer=chat_body(""))
    assert not stored_calls()[0].trainable


def test_the_writer_leaves_a_note_for_status_pages(spool: Spool, rows: Rows, tmp_path: Path) -> None:
    assert status.read(settings().spool_dir) is None
    put(spool, rows)
    process = writer_process()
    note = until(lambda: (n := status.read(settings().spool_dir)) and n.stored and n, 20)
    process.terminate()
    assert process.wait(10) == 0
    assert (note.stored, note.rejected, note.failure) == (1, 0, None)


def test_storing_makes_way_for_calls_until_it_is_behind() -> None:
    assert rest_s(0.2, lag_s=0.1) == pytest.approx(1.8)
    assert rest_s(0.2, lag_s=MOST_LAG_S) == 0


def test_a_running_writer_rests_after_fresh_calls_and_not_after_old_ones(
    spool: Spool, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr("gateway.capture.writer.rest_s", lambda worked, lag: asked.append(lag) or 0.0)
    now = datetime.now(UTC)
    for age in (60, 0):
        put(spool, rows, received_ns=int((now - timedelta(seconds=age)).timestamp() * 1e9))
        writer = Writer(settings().spool_dir)
        thread = threading.Thread(target=writer.run)
        thread.start()
        until(lambda: asked)
        writer.stop()
        thread.join(10)
        assert age <= asked.pop() < age + 30
    assert count(Call) == 2
