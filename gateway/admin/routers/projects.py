"""Owns the routes of projects and their gateway keys."""

from __future__ import annotations

from uuid import UUID

from fastapi import status

from gateway.admin.edge import Database, ProjectId, admin_router
from gateway.admin.repository import access as repository
from gateway.admin.schemas.access import KeyCreated, KeyIn, KeyOut, KeyPatch, ProjectIn, ProjectOut
from gateway.admin.schemas.common import Created
from gateway.core.errors import StepdownError
from gateway.keys import service as keys
from gateway.models import Project

router = admin_router("access", "/projects")


@router.get("")
async def list_projects(db: Database) -> list[ProjectOut]:
    """Every project, oldest first."""
    return [ProjectOut.model_validate(project) for project in await repository.projects(db)]


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_project(body: ProjectIn, db: Database) -> Created:
    """A project: the wall between tenants."""
    if await repository.project_named(db, body.name):
        raise StepdownError(
            409, "project_exists", f"A project {body.name!r} exists already.", hint="Choose another.", param="name"
        )
    project = Project(name=body.name)
    db.add(project)
    await db.commit()
    return Created(id=project.id)


@router.get("/{project_id}/keys")
async def list_keys(project_id: ProjectId, db: Database) -> list[KeyOut]:
    """Gateway keys, newest first, revoked ones too."""
    return [KeyOut.model_validate(key) for key in await repository.keys(db, project_id)]


@router.post("/{project_id}/keys", status_code=status.HTTP_201_CREATED)
async def create_key(project_id: ProjectId, body: KeyIn, db: Database) -> KeyCreated:
    """A gateway key. It is shown in this answer and never again."""
    row, key = await db.run_sync(lambda session: keys.create_key(session, project_id, **body.model_dump()))
    await db.commit()
    return KeyCreated(id=row.id, key=key)


@router.patch("/{project_id}/keys/{key_id}")
async def change_key(project_id: ProjectId, key_id: UUID, body: KeyPatch, db: Database) -> KeyOut:
    """Changes what is given."""
    fields = body.model_dump(exclude_unset=True)
    row = await db.run_sync(lambda session: keys.change_key(session, project_id, key_id, **fields))
    await db.commit()
    return KeyOut.model_validate(row)


@router.delete("/{project_id}/keys/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
async def revoke_key(project_id: ProjectId, key_id: UUID, db: Database) -> None:
    """Refuses the key from now on. Its calls keep its name."""
    await db.run_sync(lambda session: keys.revoke_key(session, project_id, key_id))
    await db.commit()
