"""SQL of rubrics, always within one project."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.models import Rubric


def add(session: Session, rubric: Rubric) -> None:
    session.add(rubric)
    session.flush()


def latest(session: Session, project_id: UUID, task_id: UUID) -> Rubric | None:
    query = select(Rubric).where(Rubric.project_id == project_id, Rubric.task_id == task_id)
    return session.scalars(query.order_by(Rubric.version.desc()).limit(1)).one_or_none()


def get(session: Session, project_id: UUID, rubric_id: UUID) -> Rubric | None:
    query = select(Rubric).where(Rubric.project_id == project_id, Rubric.id == rubric_id)
    return session.scalars(query).one_or_none()
