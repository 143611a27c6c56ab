"""Owns queries on routes, their revisions, students and deployments."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.schemas.common import Named
from gateway.admin.schemas.routing import DeploymentOut, FallbackOut, RevisionOut, RouteOut, StudentOut
from gateway.models import Deployment, Route, RouteFallback, RouteRevision, Student, Task, Upstream


def _revision(row: RouteRevision | None, student: str | None) -> RevisionOut | None:
    if row is None:
        return None
    named = Named(id=row.student_id, name=student) if row.student_id and student else None
    return RevisionOut(
        id=row.id,
        number=row.number,
        stage=row.stage,
        share=row.share,
        student=named,
        deployment_id=row.deployment_id,
        evaluation_id=row.evaluation_id,
        reason=row.reason,
        created_at=row.created_at,
    )


async def routes(db: AsyncSession, project_id: UUID) -> list[RouteOut]:
    """Every route of the project with the revision in force, by alias, the catch-all of an alias last."""
    query = (
        select(Route, Upstream.name, Task.name, RouteRevision, Student.name)
        .join(Upstream, Upstream.id == Route.upstream_id)
        .outerjoin(Task, Task.id == Route.task_id)
        .outerjoin(RouteRevision, RouteRevision.id == Route.revision_id)
        .outerjoin(Student, Student.id == RouteRevision.student_id)
        .where(Route.project_id == project_id)
        .order_by(Route.alias, Task.name.asc().nulls_last())
    )
    fallbacks = await _fallbacks(db, project_id)
    return [
        RouteOut(
            id=route.id,
            alias=route.alias,
            task=Named(id=route.task_id, name=task) if route.task_id and task else None,
            upstream=Named(id=route.upstream_id, name=upstream),
            upstream_model=route.upstream_model,
            fallbacks=fallbacks.get(route.id, []),
            capture=route.capture,
            sample=route.sample,
            retention_days=route.retention_days,
            revision=_revision(revision, student),
            created_at=route.created_at,
        )
        for route, upstream, task, revision, student in await db.execute(query)
    ]


async def _fallbacks(db: AsyncSession, project_id: UUID) -> dict[UUID, list[FallbackOut]]:
    query = (
        select(RouteFallback, Upstream.name)
        .join(Upstream, Upstream.id == RouteFallback.upstream_id)
        .where(RouteFallback.project_id == project_id)
        .order_by(RouteFallback.position)
    )
    found: dict[UUID, list[FallbackOut]] = {}
    for row, name in await db.execute(query):
        out = FallbackOut(upstream=Named(id=row.upstream_id, name=name), upstream_model=row.upstream_model)
        found.setdefault(row.route_id, []).append(out)
    return found


async def route_exists(db: AsyncSession, project_id: UUID, route_id: UUID) -> bool:
    """Whether the project has such a route."""
    query = select(Route.id).where(Route.project_id == project_id, Route.id == route_id)
    return await db.scalar(query) is not None


async def revisions(db: AsyncSession, project_id: UUID, route_id: UUID) -> list[RevisionOut]:
    """Every revision of a route, newest first."""
    query = (
        select(RouteRevision, Student.name)
        .outerjoin(Student, Student.id == RouteRevision.student_id)
        .where(RouteRevision.project_id == project_id, RouteRevision.route_id == route_id)
        .order_by(RouteRevision.number.desc())
    )
    found = [_revision(row, student) for row, student in await db.execute(query)]
    return [revision for revision in found if revision]


def _students(project_id: UUID) -> Select[*tuple[Any, ...]]:
    newest = (
        select(Deployment)
        .ext(distinct_on(Deployment.student_id))
        .where(Deployment.project_id == project_id)
        .order_by(Deployment.student_id, Deployment.id.desc())
        .subquery()
    )
    return (
        select(Student, Task.name, Deployment)
        .join(Task, Task.id == Student.task_id)
        .outerjoin(newest, newest.c.student_id == Student.id)
        .outerjoin(Deployment, Deployment.id == newest.c.id)
        .where(Student.project_id == project_id)
        .order_by(Student.id.desc())
    )


async def students(db: AsyncSession, project_id: UUID, task_id: UUID | None = None) -> list[StudentOut]:
    """Released students, newest first, each with its latest deployment."""
    query = _students(project_id)
    if task_id:
        query = query.where(Student.task_id == task_id)
    return [
        StudentOut(
            id=student.id,
            name=student.name,
            task=Named(id=student.task_id, name=task),
            run_id=student.run_id,
            evaluation_id=student.evaluation_id,
            manifest=student.manifest,
            deployment=DeploymentOut.model_validate(deployment) if deployment else None,
            created_at=student.created_at,
        )
        for student, task, deployment in await db.execute(query)
    ]


async def deployment(db: AsyncSession, project_id: UUID, deployment_id: UUID) -> Deployment | None:
    """One deployment of the project."""
    query = select(Deployment).where(Deployment.project_id == project_id, Deployment.id == deployment_id)
    return (await db.scalars(query)).one_or_none()
