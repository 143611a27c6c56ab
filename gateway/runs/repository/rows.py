"""SQL that finds runs and what they refer to, always within one project."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gateway.models import Call, Run, Task, Upstream


def add(session: Session, run: Run) -> None:
    session.add(run)
    session.flush()


def get(session: Session, project_id: UUID, run_id: UUID, *, lock: bool = False) -> Run | None:
    """A run of this project, locked for a change if asked."""
    query = select(Run).where(Run.id == run_id, Run.project_id == project_id)
    return session.scalars(query.with_for_update() if lock else query).one_or_none()


def by_id(session: Session, run_id: UUID) -> Run | None:
    """A run by its id alone: for the trainer, which was told the id by the row itself."""
    return session.get(Run, run_id)


def task(session: Session, project_id: UUID, task_id: UUID) -> Task | None:
    return session.scalars(select(Task).where(Task.id == task_id, Task.project_id == project_id)).one_or_none()


def upstream(session: Session, project_id: UUID, upstream_id: UUID) -> Upstream | None:
    query = select(Upstream).where(Upstream.id == upstream_id, Upstream.project_id == project_id)
    return session.scalars(query).one_or_none()


def judges(session: Session, project_id: UUID) -> Sequence[Upstream]:
    """The upstreams whose terms allow judging."""
    query = select(Upstream).where(Upstream.project_id == project_id, Upstream.judge_with == "allowed")
    return session.scalars(query.order_by(Upstream.id)).all()


def commonest_model(session: Session, project_id: UUID, task_id: UUID, upstream_id: UUID) -> str | None:
    """The model name that this task's calls mostly sent to this upstream."""
    query = (
        select(Call.alias)
        .where(Call.project_id == project_id, Call.task_id == task_id, Call.upstream_id == upstream_id)
        .group_by(Call.alias)
        .order_by(func.count().desc())
        .limit(1)
    )
    return session.scalars(query).one_or_none()
