"""SQL of students and their deployments, always within one project."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gateway.models import (
    Checkpoint,
    DatasetVersion,
    Deployment,
    Price,
    Route,
    RouteRevision,
    Run,
    Student,
    Task,
)


def add(session: Session, *rows: Student | Deployment | Price) -> None:
    session.add_all(rows)
    session.flush()


def get(session: Session, project_id: UUID, student_id: UUID) -> Student | None:
    query = select(Student).where(Student.project_id == project_id, Student.id == student_id)
    return session.scalars(query).one_or_none()


def of_evaluation(session: Session, evaluation_id: UUID, checkpoint_id: UUID) -> Student | None:
    query = select(Student).where(Student.evaluation_id == evaluation_id, Student.checkpoint_id == checkpoint_id)
    return session.scalars(query).one_or_none()


def provenance(session: Session, run_id: UUID) -> tuple[Run, Task, DatasetVersion]:
    """The run, its task (locked, so that two releases do not take the same name) and its dataset version."""
    query = (
        select(Run, Task, DatasetVersion)
        .join(Task, Task.id == Run.task_id)
        .join(DatasetVersion, DatasetVersion.id == Run.dataset_version_id)
        .where(Run.id == run_id)
        .with_for_update(of=Task)
    )
    run, task, version = session.execute(query).one()
    return run, task, version


def checkpoint(session: Session, checkpoint_id: UUID) -> Checkpoint | None:
    return session.get(Checkpoint, checkpoint_id)


def count_of_task(session: Session, task_id: UUID) -> int:
    return session.scalars(select(func.count()).select_from(Student).where(Student.task_id == task_id)).one()


def deployment(session: Session, deployment_id: UUID) -> Deployment | None:
    return session.get(Deployment, deployment_id)


def set_state(session: Session, deployment_id: UUID, state: str, base_url: str | None, error: str | None) -> None:
    values = {"state": state, "base_url": base_url, "error": error}
    session.execute(update(Deployment).where(Deployment.id == deployment_id).values(values))


def deployment_of(session: Session, student_id: UUID) -> Deployment | None:
    """The student's latest deployment."""
    query = select(Deployment).where(Deployment.student_id == student_id)
    return session.scalars(query.order_by(Deployment.id.desc()).limit(1)).one_or_none()


def aliases_in_force(session: Session, student_id: UUID) -> Sequence[str]:
    """Aliases of the routes whose revision in force names the student."""
    query = (
        select(Route.alias)
        .join(RouteRevision, RouteRevision.id == Route.revision_id)
        .where(RouteRevision.student_id == student_id)
    )
    return session.scalars(query.order_by(Route.alias)).all()
