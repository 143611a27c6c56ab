"""Owns the routes of projects and their gateway keys."""

from __future__ import annotations

from uuid import UUID

from fastapi import status

from gateway.admin.edge import Database, ProjectId, admin_router
from gateway.admin.repository import access as repository
from gateway.admin.schemas.access import (
    KeyCreated,
    KeyIn,
    KeyOut,
    KeyPatch,
    ProjectIn,
    ProjectOut,
    ProjectPatch,
    RedactionRule,
)
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


@router.patch("/{project_id}")
async def change_project(project_id: ProjectId, body: ProjectPatch, db: Database) -> ProjectOut:
    """Changes what is given."""
    project = await db.get_one(Project, project_id)
    for name, value in body.model_dump(exclude_unset=True).items():
        setattr(project, name, value)
    await db.commit()
    return ProjectOut.model_validate(project)


def _rules(rules: list[RedactionRule]) -> list[dict[str, str]]:
    return [rule.model_dump(exclude_none=True) for rule in rules]


@router.get("/{project_id}/keys")
async def list_keys(project_id: ProjectId, db: Database) -> list[KeyOut]:
    """Gateway keys, newest first, revoked ones too."""
    return [KeyOut.model_validate(key) for key in await repository.keys(db, project_id)]


@router.post("/{project_id}/keys", status_code=status.HTTP_201_CREATED)
async def create_key(project_id: ProjectId, body: KeyIn, db: Database) -> KeyCreated:
    """A gateway key. It is shown in this answer and never again."""
    fields = body.model_dump() | {"redact": _rules(body.redact)}
    row, key = await db.run_sync(lambda session: keys.create_key(session, project_id, **fields))
    await db.commit()
    return KeyCreated(id=row.id, key=key)


@router.patch("/{project_id}/keys/{key_id}")
async def change_key(project_id: ProjectId, key_id: UUID, body: KeyPatch, db: Database) -> KeyOut:
    """Changes what is given."""
    fields = {
        name: value
        for name, value in body.model_dump(exclude_unset=True).items()
        if value is not None or name in ("max_concurrent", "retention_days")
    }
    if body.redact is not None:
        fields["redact"] = _rules(body.redact)
    row = await db.run_sync(lambda session: keys.change_key(session, project_id, key_id, **fields))
    await db.commit()
    return KeyOut.model_validate(row)


@router.delete("/{project_id}/keys/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
async def revoke_key(project_id: ProjectId, key_id: UUID, db: Database) -> None:
    """Refuses the key from now on. Its calls keep its name."""
    await db.run_sync(lambda session: keys.revoke_key(session, project_id, key_id))
    await db.commit()
