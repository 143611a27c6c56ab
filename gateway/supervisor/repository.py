"""Owns the supervisor's queries: the first project, and deployments whose state follows what is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import exists, select, update
from sqlalchemy.orm import Session

from gateway.models import Deployment, Project, Student


@dataclass(frozen=True)
class Wanted:
    """A deployment that should run."""

    id: UUID
    student: str
    state: str
    base_url: str | None


def ensure_a_project(session: Session, name: str) -> None:
    """Makes the project `name` when there is none at all."""
    if not session.scalar(select(exists().select_from(Project))):
        session.add(Project(name=name))


def forget_engines(session: Session) -> None:
    """No engine of ours runs: nothing is ready, and no call may be sent to where one used to listen."""
    session.execute(
        update(Deployment)
        .where(Deployment.wanted, Deployment.state.in_(["starting", "ready"]))
        .values(state="requested", base_url=None)
    )


def wanted(session: Session) -> list[Wanted]:
    query = (
        select(Deployment.id, Student.name, Deployment.state, Deployment.base_url)
        .join(Student, Student.id == Deployment.student_id)
        .where(Deployment.wanted, Deployment.state.not_in(["stopped", "failed"]))
        .order_by(Deployment.id)
    )
    return [Wanted(*row) for row in session.execute(query)]


def mark_starting(session: Session, deployment_id: UUID) -> None:
    session.execute(
        update(Deployment)
        .where(Deployment.id == deployment_id, Deployment.state == "requested")
        .values(state="starting", error=None)
    )


def mark_down(session: Session, deployment_id: UUID, error: str) -> None:
    """Its engine died and will be started again. A verdict that the engine gave on itself stands."""
    session.execute(
        update(Deployment)
        .where(Deployment.id == deployment_id, Deployment.state.in_(["starting", "ready"]))
        .values(state="requested", base_url=None, error=error)
    )


def mark_failed(session: Session, deployment_id: UUID, error: str) -> None:
    session.execute(
        update(Deployment).where(Deployment.id == deployment_id).values(state="failed", base_url=None, error=error)
    )


def mark_stopped(session: Session, deployment_id: UUID) -> None:
    session.execute(
        update(Deployment)
        .where(Deployment.id == deployment_id, ~Deployment.wanted, Deployment.state != "failed")
        .values(state="stopped", base_url=None)
    )
