"""The lease: one holder at a time, an epoch that fences, failures that are counted and forgiven."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest

from gateway.core.db import session_scope
from gateway.models import Run, RunEvent, RunStep
from gateway.runs import lease, progress
from gateway.runs.lease import Lease, LeaseLost
from tests import seeded

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def run_id() -> UUID:
    with session_scope() as session:
        return seeded.run(session, seeded.task(session, seeded.project(session))).id


def take(
    run_id: UUID, owner: str = "a", seconds: float = 30, dead: str | None = None, last_words: str = ""
) -> lease.Taken | None:
    with session_scope() as session:
        return lease.take(session, run_id, owner=owner, seconds=seconds, dead_owner=dead, last_words=last_words)


def held(run_id: UUID, **how: object) -> Lease:
    taken = take(run_id, **how)  # type: ignore[arg-type]
    assert taken is not None
    assert taken.lease is not None
    return taken.lease


def row(run_id: UUID) -> Run:
    with session_scope() as session:
        return session.get_one(Run, run_id)


def finish(hold: Lease, step: int) -> None:
    with session_scope() as session:
        progress.finish_step(session, lease.held(session, hold), "sft", step, metrics={"loss": 1.0 / step}, seconds=0.1)


def test_a_held_lease_is_not_given_to_another(run_id: UUID) -> None:
    first = held(run_id)
    assert first.epoch == 1
    assert take(run_id, "b") is None
    assert row(run_id).lease_owner == "a"
    assert row(run_id).state == "running"


def test_an_expired_lease_and_a_dead_owners_are(run_id: UUID) -> None:
    held(run_id, seconds=-1)
    assert held(run_id, owner="b").epoch == 2
    assert take(run_id, "c", dead="a") is None, "b holds it, not a"
    assert held(run_id, owner="c", dead="b").epoch == 3


def test_who_lost_the_lease_can_write_nothing(run_id: UUID) -> None:
    old = held(run_id, seconds=-1)
    finish(old, 1)
    new = held(run_id, owner="b")
    with pytest.raises(LeaseLost):
        finish(old, 2)
    with pytest.raises(LeaseLost), session_scope() as session:
        lease.extend(session, old, "a", 30)
    with pytest.raises(LeaseLost), session_scope() as session:
        lease.stop(session, old, "succeeded")
    finish(new, 2)
    with session_scope() as session:
        steps = session.query(RunStep).order_by(RunStep.step).all()
    assert [(step.step, step.epoch) for step in steps] == [(1, 1), (2, 2)]


def test_a_write_under_way_holds_the_next_claim_off(run_id: UUID) -> None:
    """Between a write's check and its commit nobody else may take the run: else both would write the same step."""
    old = held(run_id, seconds=-1)
    with session_scope() as session:
        run = lease.held(session, old)
        assert take(run_id, "b") is None
        progress.finish_step(session, run, "sft", 1, metrics={}, seconds=0)
    assert held(run_id, owner="b").epoch == 2


def test_only_one_of_many_takes_it(run_id: UUID) -> None:
    barrier, won = threading.Barrier(8), []

    def race(name: str) -> None:
        barrier.wait()
        if take(run_id, name) is not None:
            won.append(name)

    threads = [threading.Thread(target=race, args=(f"w{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert row(run_id).lease_owner == won[0]


def test_the_same_step_is_written_once(run_id: UUID) -> None:
    hold = held(run_id, seconds=-1)
    finish(hold, 1)
    finish(hold, 1)  # a commit whose answer was lost, repeated
    again = held(run_id, owner="b")
    with pytest.raises(ValueError, match="epoch 1 already"):
        finish(again, 1)


def test_three_failures_without_a_step_end_the_run(run_id: UUID) -> None:
    held(run_id, seconds=-1)
    for attempt in (1, 2):
        held(run_id, seconds=-1)
        assert row(run_id).attempts == attempt
    taken = take(run_id, last_words="ModuleNotFoundError: No module named 'torch'")
    assert taken is not None
    assert taken.lease is None
    assert taken.previous_owner == "a"
    assert "The last error: ModuleNotFoundError: No module named 'torch'" in (row(run_id).error or "")
    run = row(run_id)
    assert run.state == "failed"
    assert "3 times in a row in phase freeze" in (run.error or "")
    assert take(run_id) is None


def test_a_finished_step_forgives_failures(run_id: UUID) -> None:
    held(run_id, seconds=-1)
    held(run_id, seconds=-1)
    finish(held(run_id, seconds=-1), 1)
    assert row(run_id).attempts == 0
    held(run_id, seconds=-1)
    assert row(run_id).state == "running"


def test_a_failure_that_may_pass_is_tried_again_after_its_time(run_id: UUID) -> None:
    hold = held(run_id)
    with session_scope() as session:
        lease.retry_later(session, hold, "The judge is away.", 30)
    assert take(run_id) is None
    with session_scope() as session:
        waiting = lease.unattended(session)
        lease.retry_later(session, hold, "The judge is away.", -1)
    assert [(w.owner, w.free) for w in waiting] == [(None, False)]
    held(run_id)
    assert row(run_id).error == "The judge is away."
    with session_scope() as session:
        kinds = [event.kind for event in session.query(RunEvent).order_by(RunEvent.id)]
    assert kinds == ["failure", "failure", "restart"]


def test_stopping_for_good_frees_nothing(run_id: UUID) -> None:
    hold = held(run_id)
    with session_scope() as session:
        lease.stop(session, hold, "paused", "The judge reached its cap.")
    assert take(run_id) is None
    assert row(run_id).error == "The judge reached its cap."
    assert row(run_id).finished_at is None


def test_handing_back_counts_no_failure(run_id: UUID) -> None:
    for _ in range(5):
        hold = held(run_id)
        with session_scope() as session:
            lease.hand_back(session, hold)
    assert row(run_id).attempts == 0
    assert row(run_id).state == "queued"
