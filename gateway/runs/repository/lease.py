"""SQL of the lease: who may work on a run now. Times are the database's own, so hosts' clocks do not matter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Row, func, or_, select, true, update
from sqlalchemy.orm import Session

from gateway.models import Run

ACTIVE = ("queued", "running")


def lock_claimable(session: Session, run_id: UUID, dead_owner: str | None) -> Run | None:
    """The run, locked, if nobody holds its lease; None where somebody does or another session has it locked.

    `dead_owner`: an owner known to be gone, whose lease counts as expired.
    """
    free = or_(Run.lease_expires_at.is_(None), Run.lease_expires_at < func.clock_timestamp())
    if dead_owner is not None:
        free = or_(free, Run.lease_owner == dead_owner)
    query = select(Run).where(Run.id == run_id, Run.state.in_(ACTIVE), free).with_for_update(skip_locked=True)
    return session.scalars(query).one_or_none()


def extend(session: Session, run_id: UUID, epoch: int, owner: str | None, seconds: float) -> bool:
    """Moves the lease's end to `seconds` from now. False where the epoch is no longer the run's, or it was stopped."""
    query = (
        update(Run)
        .where(Run.id == run_id, Run.lease_epoch == epoch, Run.state == "running")
        .values(lease_owner=owner, lease_expires_at=func.clock_timestamp() + timedelta(seconds=seconds))
        .returning(Run.id)
    )
    return session.execute(query).one_or_none() is not None


def lock_held(session: Session, run_id: UUID, epoch: int) -> Run | None:
    """The run, locked until the transaction ends, if `epoch` still holds it.

    The lock keeps a claim waiting: without it, a write could pass the check, lose the lease, and commit after.
    """
    query = (
        select(Run)
        .where(Run.id == run_id, Run.lease_epoch == epoch, Run.state == "running")
        .with_for_update(key_share=True)
    )
    return session.scalars(query).one_or_none()


def wanted(session: Session) -> Sequence[Row[UUID, str | None, bool]]:
    """Every queued or running run: its id, its lease's owner, whether its lease is free."""
    free = func.coalesce(Run.lease_expires_at < func.clock_timestamp(), true())
    return session.execute(select(Run.id, Run.lease_owner, free).where(Run.state.in_(ACTIVE)).order_by(Run.id)).all()
