"""`kill -9` of worker and trainer, in both learning phases: the run goes on, loses one step at most, doubles none.

Real Celery worker and beat, Valkey, PostgreSQL and trainer processes; only the model is tiny.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from sqlalchemy import select

from gateway.core import processes
from gateway.core.db import session_scope
from gateway.core.jobs import enqueue
from gateway.core.settings import settings
from gateway.models import Run, RunEvent, RunStep
from gateway.runs import lease, progress
from gateway.runs.lease import Lease, LeaseLost
from tests.distill.conftest import row

pytestmark = [pytest.mark.usefixtures("broker"), pytest.mark.timeout(280)]
CELERY = [sys.executable, "-m", "celery", "-A", "distill.app:app"]


def until(reached: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


@contextmanager
def celery(home: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery process in a session of its own; whatever is left of it is ended."""
    with (home / f"{arguments[0]}.log").open("ab") as log:
        process = subprocess.Popen([*CELERY, *arguments], stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        processes.end(processes.family(process.pid), grace_s=0)
        process.wait()


def worker(home: Path) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return celery(home, "worker", "--queues=default,judge,train", "--concurrency=1", "--loglevel=INFO")


@pytest.fixture
def beat(home: Path) -> Iterator[None]:
    with celery(home, "beat", f"--schedule={home / 'beat'}", "--pidfile="):
        yield


@pytest.fixture
def trainers_end(run_id: UUID) -> Iterator[None]:
    """Ends the run's trainer, which outlives its worker by design."""
    yield
    processes.end(trainers_of(run_id), grace_s=0)


def trainers_of(run_id: UUID) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "distill.train" in line and str(run_id) in line:
            found.append(process)
    return found


def steps(run_id: UUID, phase: str) -> list[int]:
    with session_scope() as session:
        query = select(RunStep.step).where(RunStep.run_id == run_id, RunStep.phase == phase).order_by(RunStep.step)
        return list(session.scalars(query))


def slow(run_id: UUID) -> None:
    """Enough steps that a kill lands inside a phase."""
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        run.config = run.config | {"warm_start_steps": 10, "grpo_steps": 6, "sft_all_steps": 2, "sft_validate_every": 5}


def kill_within(run_id: UUID, phase: str, kill: Callable[[], None]) -> int:
    """Kills in the middle of a phase; returns how many of its steps were finished then."""
    until(lambda: len(steps(run_id, phase)) >= 2, 90, f"two steps of {phase}")
    kill()
    return len(steps(run_id, phase))


def kill_trainer(run_id: UUID) -> Callable[[], None]:
    def kill() -> None:
        (process,) = trainers_of(run_id)
        process.kill()

    return kill


def settled(run_id: UUID) -> Run:
    until(lambda: row(run_id).state not in ("queued", "running"), 150, "the end of the run")
    return row(run_id)


def expect_whole(run_id: UUID) -> None:
    run = settled(run_id)
    log = (settings().logs_dir / f"run-{run_id}.log").read_text()[-3000:]
    assert (run.state, run.phase) == ("succeeded", "done"), f"{run.error}\n{log}"
    assert steps(run_id, "sft") == list(range(1, 11))
    assert steps(run_id, "grpo") == list(range(1, 7))
    assert steps(run_id, "evaluate") == [1, 2, 3, 4]


def test_a_killed_trainer_goes_on_in_both_phases(run_id: UUID, home: Path, beat: None, trainers_end: None) -> None:
    slow(run_id)
    with worker(home):
        enqueue("distill.advance", run_id, queue="train")
        for phase in ("sft", "grpo"):
            before = kill_within(run_id, phase, kill_trainer(run_id))
            killed = time.monotonic()
            until(lambda p=phase, b=before: len(steps(run_id, p)) > b, 60, f"{phase} goes on")
            with session_scope() as session:
                newest = session.scalars(select(RunEvent).order_by(RunEvent.id.desc())).all()
                restart = next(event for event in newest if event.kind == "restart")
            waited = restart.created_at.timestamp() - (time.time() - (time.monotonic() - killed))
            assert waited < 15, f"restarted only after {waited:.1f} s"
        expect_whole(run_id)
    with session_scope() as session:
        epochs = session.scalars(select(RunStep.epoch).where(RunStep.phase == "grpo").order_by(RunStep.step)).all()
    assert list(epochs) == sorted(epochs)
    assert epochs[-1] == 3


def test_a_killed_worker_leaves_a_trainer_that_goes_on_alone(
    run_id: UUID, home: Path, beat: None, trainers_end: None
) -> None:
    """The trainer outlives its worker and holds its lease: nobody starts a second one beside it."""
    slow(run_id)
    with worker(home) as process:
        enqueue("distill.advance", run_id, queue="train")
        kill_within(run_id, "sft", lambda: processes.end(children_and(process.pid), grace_s=0))
    with worker(home):
        until(lambda: len(steps(run_id, "grpo")) >= 2, 90, "two steps of grpo")
        assert len(trainers_of(run_id)) == 1
    assert row(run_id).lease_epoch == 1


def test_worker_and_trainer_killed_together_go_on_with_the_next_worker(
    run_id: UUID, home: Path, beat: None, trainers_end: None
) -> None:
    slow(run_id)
    with worker(home):
        enqueue("distill.advance", run_id, queue="train")
        until(lambda: len(steps(run_id, "sft")) >= 2, 90, "two steps of sft")
    processes.end(trainers_of(run_id), grace_s=0)
    before = steps(run_id, "sft")
    with worker(home) as process:
        kill_within(run_id, "grpo", lambda: processes.end([*children_and(process.pid), *trainers_of(run_id)], 0))
    assert steps(run_id, "sft")[: len(before)] == before
    before = steps(run_id, "grpo")
    with worker(home):
        until(lambda: len(steps(run_id, "grpo")) > len(before), 60, "grpo goes on")
    assert row(run_id).lease_epoch == 3
    assert steps(run_id, "sft") == list(range(1, 11))


def test_a_stopped_trainer_that_wakes_up_late_is_fenced_and_ends(
    run_id: UUID, home: Path, trainers_end: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer that was frozen past its lease (a suspended machine) can write nothing when it goes on."""
    from distill import trainers

    slow(run_id)
    monkeypatch.setenv("STEPDOWN_LEASE_S", "3")
    settings.cache_clear()
    assert trainers.start(run_id)
    until(lambda: len(steps(run_id, "sft")) >= 2, 90, "two steps of sft")
    (old,) = trainers_of(run_id)
    old.send_signal(signal.SIGSTOP)
    held = Lease(run_id, 1)
    with session_scope() as session, pytest.raises(AssertionError, match="held"):
        assert lease.take(session, run_id, owner="another host", seconds=60) is not None, "held"
    until(lambda: _takes_over(run_id), 10, "the lease runs out")
    done = steps(run_id, "sft")
    old.send_signal(signal.SIGCONT)
    until(lambda: _ended(old), 20, "the old trainer ends")
    assert steps(run_id, "sft") == done
    assert row(run_id).lease_owner == "another host"
    with pytest.raises(LeaseLost), session_scope() as session:
        progress.add_event(session, lease.held(session, held), "late", "never")


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _takes_over(run_id: UUID) -> bool:
    with session_scope() as session:
        return lease.take(session, run_id, owner="another host", seconds=60) is not None


def children_and(pid: int) -> list[psutil.Process]:
    """A worker and its pool, not the trainers: those lead sessions of their own."""
    leader = psutil.Process(pid)
    return [p for p in [leader, *leader.children(recursive=True)] if os.getsid(p.pid) == os.getsid(pid)]
