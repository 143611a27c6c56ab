"""Owns the doctor's queries, over every project: it is the operator who asks."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from gateway.models import ApiKey, Deployment, Project, Route, RouteRevision, Student, Upstream


@dataclass(frozen=True)
class Provider:
    """An upstream with its project's name."""

    project: str
    name: str
    kind: str
    base_url: str | None
    credential: bytes | None


@dataclass(frozen=True)
class Named:
    """A route whose calls a student should answer, and what became of its engine."""

    project: str
    alias: str
    student: str
    wanted: bool | None
    state: str | None
    error: str | None


def server_version(session: Session) -> int:
    """PostgreSQL's version as a number: 150004 is 15.4."""
    return int(session.execute(select(func.current_setting("server_version_num"))).scalar_one())


def providers(session: Session) -> list[Provider]:
    """Every upstream."""
    query = (
        select(Project.name, Upstream.name, Upstream.kind, Upstream.base_url, Upstream.credential)
        .join(Project, Project.id == Upstream.project_id)
        .order_by(Project.name, Upstream.name)
    )
    return [Provider(*row) for row in session.execute(query)]


def named_students(session: Session) -> list[Named]:
    """Every route whose revision in force sends calls to a student."""
    query = (
        select(Project.name, Route.alias, Student.name, Deployment.wanted, Deployment.state, Deployment.error)
        .join(Project, Project.id == Route.project_id)
        .join(RouteRevision, RouteRevision.id == Route.revision_id)
        .join(Student, Student.id == RouteRevision.student_id)
        .outerjoin(Deployment, Deployment.id == RouteRevision.deployment_id)
        .where(RouteRevision.share > 0)
        .order_by(Project.name, Route.alias)
    )
    return [Named(*row) for row in session.execute(query)]


def projects_lacking(session: Session) -> list[tuple[str, bool, bool]]:
    """Projects by name that cannot be called: whether they have a key that holds, whether they have a route.

    A pass-through token leads to its upstream where no route does.
    """
    key = exists().where(ApiKey.project_id == Project.id, ApiKey.revoked_at.is_(None))
    route = exists().where(Route.project_id == Project.id) | key.where(ApiKey.upstream_id.is_not(None))
    query = select(Project.name, key, route).where(~key | ~route).order_by(Project.name)
    return [(name, has_key, has_route) for name, has_key, has_route in session.execute(query)]
