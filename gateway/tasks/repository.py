"""SQL of tasks, always within one project."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from gateway.models import Call, Task


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


def adopt_calls(session: Session, task: Task) -> int:
    """Gives the task every call of its fingerprint that has none yet; returns how many."""
    query = (
        update(Call)
        .where(Call.project_id == task.project_id, Call.fingerprint == task.fingerprint, Call.task_id.is_(None))
        .values(task_id=task.id)
        .returning(Call.id)
    )
    return len(session.execute(query).all())
