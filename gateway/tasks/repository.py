"""SQL of tasks, always within one project."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Row, Text, cast, func, select, update
from sqlalchemy.orm import Session

from gateway.models import Call, Project, Task


def add(session: Session, task: Task) -> None:
    session.add(task)
    session.flush()


def get(session: Session, project_id: UUID, task_id: UUID) -> Task | None:
    return session.scalars(select(Task).where(Task.id == task_id, Task.project_id == project_id)).one_or_none()


def by_fingerprint(session: Session, project_id: UUID, fingerprint: bytes) -> Task | None:
    query = select(Task).where(Task.project_id == project_id, Task.fingerprint == fingerprint)
    return session.scalars(query).one_or_none()


def slugs(session: Session, project_id: UUID) -> set[str]:
    """Every slug that is taken."""
    return set(session.scalars(select(Task.slug).where(Task.project_id == project_id)))


def project_ids(session: Session) -> Sequence[UUID]:
    return session.scalars(select(Project.id).order_by(Project.id)).all()


def unknown_shapes(session: Session, project_id: UUID, since: UUID, minimum: int) -> Sequence[Row[bytes | None, str]]:
    """Fingerprints without a task that came at least `minimum` times in good calls from id `since` on.

    Each with the id of its latest call, commonest first.
    """
    # PostgreSQL has no max() for uuid before version 18; text sorts alike.
    latest = func.max(cast(Call.id, Text))
    query = (
        select(Call.fingerprint, latest)
        .where(
            Call.project_id == project_id,
            Call.id >= since,
            Call.task_id.is_(None),
            Call.fingerprint.is_not(None),
            Call.trainable,
        )
        .group_by(Call.fingerprint)
        .having(func.count() >= minimum)
        .order_by(func.count().desc())
    )
    return session.execute(query).all()


def call(session: Session, project_id: UUID, call_id: UUID) -> Call | None:
    return session.scalars(select(Call).where(Call.project_id == project_id, Call.id == call_id)).one_or_none()


def adopt_calls(session: Session, task: Task) -> int:
    """Gives the task every call of its fingerprint that has none yet; returns how many."""
    query = (
        update(Call)
        .where(Call.project_id == task.project_id, Call.fingerprint == task.fingerprint, Call.task_id.is_(None))
        .values(task_id=task.id)
        .returning(Call.id)
    )
    return len(session.execute(query).all())
