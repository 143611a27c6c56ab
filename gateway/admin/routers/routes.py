"""Owns the routes of who answers: routes and revisions, students, deployments."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, status

from gateway.admin.edge import Database, ProjectId, admin_router
from gateway.admin.repository import routing as repository
from gateway.admin.schemas.routing import (
    DeploymentOut,
    FallbackIn,
    FallbacksIn,
    RevisionIn,
    RevisionNumber,
    RevisionOut,
    RollbackIn,
    RouteCreated,
    RouteIn,
    RouteOut,
    RoutePatch,
    StudentOut,
)
from gateway.core.errors import not_found
from gateway.models import Deployment
from gateway.routing import service as routing
from gateway.students import service as students

router = admin_router("routing", "/projects/{project_id}")


@router.get("/routes")
async def list_routes(project_id: ProjectId, db: Database) -> list[RouteOut]:
    """Routes with the revision in force."""
    return await repository.routes(db, project_id)


@router.post("/routes", status_code=status.HTTP_201_CREATED)
async def create_route(project_id: ProjectId, body: RouteIn, db: Database) -> RouteCreated:
    """A route in stage `observe`: the upstream answers everything."""
    given = body.model_dump() | {"fallbacks": _pairs(body.fallbacks)}
    route, revision = await db.run_sync(lambda session: routing.create_route(session, project_id, **given))
    await db.commit()
    return RouteCreated(id=route.id, revision=revision.number)


@router.patch("/routes/{route_id}", status_code=status.HTTP_204_NO_CONTENT)
async def change_route(project_id: ProjectId, route_id: UUID, body: RoutePatch, db: Database) -> None:
    """Changes what may be kept of a route's calls; what is left out stays."""
    given = body.model_dump(exclude_unset=True)
    fields = {name: value for name, value in given.items() if value is not None or name == "retention_days"}
    await db.run_sync(lambda session: routing.change_route(session, project_id, route_id, **fields))
    await db.commit()


@router.put("/routes/{route_id}/fallbacks", status_code=status.HTTP_204_NO_CONTENT)
async def set_fallbacks(project_id: ProjectId, route_id: UUID, body: FallbacksIn, db: Database) -> None:
    """Replaces the upstreams that are asked, in this order, where those before give no answer."""
    chosen = _pairs(body.fallbacks)
    await db.run_sync(lambda session: routing.change_fallbacks(session, project_id, route_id, chosen))
    await db.commit()


def _pairs(fallbacks: list[FallbackIn]) -> list[tuple[UUID, str | None]]:
    return [(each.upstream_id, each.upstream_model or None) for each in fallbacks]


@router.get("/routes/{route_id}/revisions")
async def list_revisions(project_id: ProjectId, route_id: UUID, db: Database) -> list[RevisionOut]:
    """Every revision of a route, newest first."""
    if not await repository.route_exists(db, project_id, route_id):
        raise not_found("route", route_id)
    return await repository.revisions(db, project_id, route_id)


@router.post("/routes/{route_id}/revisions", status_code=status.HTTP_201_CREATED)
async def revise_route(project_id: ProjectId, route_id: UUID, body: RevisionIn, db: Database) -> RevisionNumber:
    """Changes who answers. A student needs evidence and a deployment that is ready."""
    revision = await db.run_sync(
        lambda session: routing.add_revision(session, project_id, route_id, **body.model_dump())
    )
    await db.commit()
    return RevisionNumber(number=revision.number)


@router.post("/routes/{route_id}/rollback", status_code=status.HTTP_201_CREATED)
async def roll_back_route(
    project_id: ProjectId, route_id: UUID, db: Database, body: RollbackIn | None = None
) -> RevisionNumber:
    """Puts the previous revision back."""
    reason = (body or RollbackIn.model_validate({})).reason
    revision = await db.run_sync(lambda session: routing.rollback(session, project_id, route_id, reason=reason))
    await db.commit()
    return RevisionNumber(number=revision.number)


@router.get("/students")
async def list_students(
    project_id: ProjectId, db: Database, task: Annotated[UUID | None, Query()] = None
) -> list[StudentOut]:
    """Released students, newest first."""
    return await repository.students(db, project_id, task)


@router.post("/students/{student_id}/load")
async def load_student(project_id: ProjectId, student_id: UUID, db: Database) -> DeploymentOut:
    """Asks for a student's engine: after an unload, or to try again after it failed."""
    deployment = await db.run_sync(lambda session: students.load(session, project_id, student_id))
    return await _committed(db, deployment)


@router.post("/students/{student_id}/unload")
async def unload_student(project_id: ProjectId, student_id: UUID, db: Database) -> DeploymentOut:
    """Ends a student's engine and frees its memory. Refused while a route names the student."""
    deployment = await db.run_sync(lambda session: students.unload(session, project_id, student_id))
    return await _committed(db, deployment)


async def _committed(db: Database, deployment: Deployment) -> DeploymentOut:
    await db.commit()
    await db.refresh(deployment)
    return DeploymentOut.model_validate(deployment)


@router.get("/deployments/{deployment_id}")
async def get_deployment(project_id: ProjectId, deployment_id: UUID, db: Database) -> DeploymentOut:
    """A student in an engine, and whether it is ready."""
    deployment = await repository.deployment(db, project_id, deployment_id)
    if deployment is None:
        raise not_found("deployment", deployment_id)
    return DeploymentOut.model_validate(deployment)
