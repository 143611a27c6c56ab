"""SQL of routes and their revisions, always within one project."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from gateway.models import Deployment, Route, RouteFallback, RouteRevision, Task, Upstream


def upstream_exists(session: Session, project_id: UUID, upstream_id: UUID) -> bool:
    query = select(Upstream.id).where(Upstream.id == upstream_id, Upstream.project_id == project_id)
    return session.scalars(query).one_or_none() is not None


def task_exists(session: Session, project_id: UUID, task_id: UUID) -> bool:
    query = select(Task.id).where(Task.id == task_id, Task.project_id == project_id)
    return session.scalars(query).one_or_none() is not None


def route_of(session: Session, project_id: UUID, alias: str, task_id: UUID | None) -> Route | None:
    """The route of exactly this alias and task; task None: the one for every other call of the alias."""
    query = select(Route).where(
        Route.project_id == project_id, Route.alias == alias, Route.task_id.is_not_distinct_from(task_id)
    )
    return session.scalars(query).one_or_none()


def lock_route(session: Session, project_id: UUID, route_id: UUID) -> Route | None:
    """The route, locked until the transaction ends, so that revisions get their numbers one after another."""
    query = select(Route).where(Route.id == route_id, Route.project_id == project_id).with_for_update()
    return session.scalars(query).one_or_none()


def revisions(session: Session, route_id: UUID) -> Sequence[RouteRevision]:
    """The route's history, oldest first."""
    query = select(RouteRevision).where(RouteRevision.route_id == route_id)
    return session.scalars(query.order_by(RouteRevision.number)).all()


def add_route(session: Session, route: Route) -> None:
    session.add(route)
    session.flush()


def set_fallbacks(session: Session, route: Route, chosen: Sequence[tuple[UUID, str | None]]) -> None:
    """Puts (upstream, model's name there) in the place of the route's fallbacks, in this order."""
    session.execute(delete(RouteFallback).where(RouteFallback.route_id == route.id))
    session.add_all(
        RouteFallback(
            route_id=route.id, position=i, project_id=route.project_id, upstream_id=upstream_id, upstream_model=model
        )
        for i, (upstream_id, model) in enumerate(chosen)
    )
    session.flush()


def add_revision(session: Session, revision: RouteRevision) -> None:
    session.add(revision)
    session.flush()


def ready_deployment(session: Session, student_id: UUID) -> Deployment | None:
    """The student's latest deployment that is wanted and ready."""
    query = select(Deployment).where(
        Deployment.student_id == student_id, Deployment.wanted, Deployment.state == "ready"
    )
    return session.scalars(query.order_by(Deployment.id.desc()).limit(1)).one_or_none()
