"""Owns queries on projects and gateway keys."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.models import ApiKey, Project


async def projects(db: AsyncSession) -> Sequence[Project]:
    """Every project, oldest first."""
    return (await db.scalars(select(Project).order_by(Project.id))).all()


async def project_named(db: AsyncSession, name: str) -> Project | None:
    """The project of that name."""
    return (await db.scalars(select(Project).where(Project.name == name))).one_or_none()


async def project_exists(db: AsyncSession, project_id: UUID) -> bool:
    """Whether there is such a project."""
    return await db.scalar(select(Project.id).where(Project.id == project_id)) is not None


async def keys(db: AsyncSession, project_id: UUID) -> Sequence[ApiKey]:
    """Every key of the project, newest first, revoked ones too."""
    return (await db.scalars(select(ApiKey).where(ApiKey.project_id == project_id).order_by(ApiKey.id.desc()))).all()
