"""SQL of gateway keys, always within one project."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.models import ApiKey, Project, Upstream


def project_exists(session: Session, project_id: UUID) -> bool:
    return session.scalars(select(Project.id).where(Project.id == project_id)).one_or_none() is not None


def add(session: Session, key: ApiKey) -> None:
    session.add(key)
    session.flush()


def upstream_kind(session: Session, project_id: UUID, upstream_id: UUID) -> str | None:
    """The kind of one of the project's upstreams."""
    return session.scalar(select(Upstream.kind).where(Upstream.id == upstream_id, Upstream.project_id == project_id))


def get(session: Session, project_id: UUID, key_id: UUID) -> ApiKey | None:
    query = select(ApiKey).where(ApiKey.id == key_id, ApiKey.project_id == project_id)
    return session.scalars(query).one_or_none()
