"""SQL of a run's progress: steps, rollouts, sequences, checkpoints, events."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from gateway.models import Checkpoint, LedgerEntry, Rollout, Run, RunEvent, RunStep, TrainedSequence


def add(session: Session, *rows: RunStep | Rollout | Checkpoint | RunEvent | TrainedSequence) -> None:
    """Inserts rows now, so that a doubled step fails here and not at the commit."""
    session.add_all(rows)
    session.flush()


def step(session: Session, run_id: UUID, phase: str, number: int) -> RunStep | None:
    """One finished step."""
    return session.get(RunStep, (run_id, phase, number))


def last_step(session: Session, run_id: UUID, phase: str) -> RunStep | None:
    """The phase's last finished step."""
    query = select(RunStep).where(RunStep.run_id == run_id, RunStep.phase == phase)
    return session.scalars(query.order_by(RunStep.step.desc()).limit(1)).one_or_none()


def steps(session: Session, run_id: UUID, phase: str) -> Sequence[RunStep]:
    """Every finished step of a phase, in order."""
    query = select(RunStep).where(RunStep.run_id == run_id, RunStep.phase == phase)
    return session.scalars(query.order_by(RunStep.step)).all()


def checkpoint(session: Session, run_id: UUID, phase: str) -> Checkpoint | None:
    """The phase's chosen checkpoint."""
    query = select(Checkpoint).where(Checkpoint.run_id == run_id, Checkpoint.phase == phase)
    return session.scalars(query.order_by(Checkpoint.step.desc()).limit(1)).one_or_none()


def forget_checkpoints(session: Session, run_id: UUID, phase: str) -> None:
    """Removes a phase's checkpoint rows: a better one takes their place."""
    session.execute(delete(Checkpoint).where(Checkpoint.run_id == run_id, Checkpoint.phase == phase))


def forget_sequences(session: Session, run_id: UUID, phase: str, steps: int) -> None:
    """Removes a phase's sequences but those of its first step and of the latest, `steps` in all."""
    mine = (TrainedSequence.run_id == run_id, TrainedSequence.phase == phase)
    known = session.scalars(select(TrainedSequence.step).where(*mine).distinct().order_by(TrainedSequence.step)).all()
    gone = known[1 : 1 + len(known) - steps] if len(known) > steps else []
    if gone:
        session.execute(delete(TrainedSequence).where(*mine, TrainedSequence.step.in_(gone)))


def judge_spend(session: Session, run_id: UUID) -> tuple[Decimal, int]:
    """The run's judge spend in USD and the number of judge calls in the ledger."""
    calls = select(func.count()).where(LedgerEntry.run_id == run_id, LedgerEntry.kind == "judge").scalar_subquery()
    amount, number = session.execute(select(Run.judge_spend, calls).where(Run.id == run_id)).one()
    return amount, number


def add_judge_spend(session: Session, run_id: UUID, amount: Decimal) -> Decimal:
    """Adds to the run's judge spend and returns the sum so far, in USD."""
    query = update(Run).where(Run.id == run_id).values(judge_spend=Run.judge_spend + amount).returning(Run.judge_spend)
    return session.scalars(query).one()
