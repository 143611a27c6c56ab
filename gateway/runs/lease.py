"""Owns the rules of a run's lease: who works on it, since which epoch, and when to stop trying.

Rows are the queue. Whoever takes the lease raises the epoch; every later write checks it. Must not start processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.jsontext import storable
from gateway.models import Run
from gateway.runs import progress
from gateway.runs.repository import lease as repository

MAX_FAILURES = 3


class LeaseLost(Exception):
    """Somebody else holds the run now, or it was stopped: end at once and write nothing."""


@dataclass(frozen=True)
class Lease:
    """The right to write about a run, for as long as its epoch is the run's."""

    run_id: UUID
    epoch: int


@dataclass(frozen=True)
class Unattended:
    """A run that wants to be worked on: who holds its lease, and whether that has run out or never was."""

    run_id: UUID
    owner: str | None
    free: bool


@dataclass(frozen=True)
class Taken:
    """What taking a lease found: the lease, or None where the run was given up, and who held it before."""

    lease: Lease | None
    previous_owner: str | None


def take(
    session: Session, run_id: UUID, *, owner: str, seconds: float, dead_owner: str | None = None, last_words: str = ""
) -> Taken | None:
    """Takes the lease if it is free (or held by `dead_owner`); None where it is not.

    A run found running has lost its trainer without a finished step since: after three such failures in a row it is
    given up, with the `last_words` of its log.
    """
    run = repository.lock_claimable(session, run_id, dead_owner)
    if run is None:
        return None
    previous, restarted = run.lease_owner, run.state == "running"
    if restarted:
        run.attempts += 1
    if run.attempts >= MAX_FAILURES:
        _give_up(session, run, last_words)
        return Taken(None, previous)
    run.state, run.lease_epoch, run.started_at = "running", run.lease_epoch + 1, run.started_at or now()
    session.flush()
    repository.extend(session, run.id, run.lease_epoch, owner, seconds)
    if restarted:
        progress.add_event(session, run, "restart", f"Going on in phase {run.phase}, attempt {run.attempts + 1}.")
    return Taken(Lease(run.id, run.lease_epoch), previous)


def unattended(session: Session) -> list[Unattended]:
    """Every queued or running run, oldest first."""
    return [Unattended(*row) for row in repository.wanted(session)]


def _give_up(session: Session, run: Run, last_words: str) -> None:
    error = run.error or last_words
    last = f" The last error: {error}" if error else " It left no error: look at the end of its log."
    run.error = (
        f"The trainer ended {MAX_FAILURES} times in a row in phase {run.phase} without finishing a step.{last} "
        f"Its log is logs/run-{run.id}.log. Resume the run when the cause is gone."
    )
    _end(session, run, "failed", run.error)


def extend(session: Session, lease: Lease, owner: str, seconds: float) -> None:
    """Keeps the lease for another `seconds`. Raises LeaseLost."""
    if not repository.extend(session, lease.run_id, lease.epoch, owner, seconds):
        raise LeaseLost


def held(session: Session, lease: Lease) -> Run:
    """The run, locked for this transaction: call it first in each transaction that writes. Raises LeaseLost."""
    run = repository.lock_held(session, lease.run_id, lease.epoch)
    if run is None:
        raise LeaseLost
    return run


def retry_later(session: Session, lease: Lease, error: str, seconds: float) -> None:
    """After a failure that may pass: lets the lease end in `seconds`, when the sweep starts the run again."""
    run = held(session, lease)
    run.error = storable(error)
    progress.add_event(session, run, "failure", f"{error} Trying again in {seconds:.0f} s.")
    session.flush()
    repository.extend(session, run.id, run.lease_epoch, None, seconds)


def hand_back(session: Session, lease: Lease) -> None:
    """Queues the run again: its trainer was asked to end, which is no failure."""
    run = held(session, lease)
    run.state, run.lease_expires_at, run.lease_owner = "queued", None, None
    progress.add_event(session, run, "stopped", "The trainer was asked to end; the run goes on with the next start.")


def stop(session: Session, lease: Lease, state: str, error: str | None = None) -> None:
    """Ends the work for good (`succeeded`, `failed`) or until somebody resumes it (`paused`)."""
    run = held(session, lease)
    run.error = storable(error)
    _end(session, run, state, error or "The run has finished.")


def _end(session: Session, run: Run, state: str, message: str) -> None:
    run.state, run.lease_expires_at = state, None
    if state != "paused":
        run.finished_at = now()
    progress.add_event(session, run, state, message)
