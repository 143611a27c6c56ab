"""Owns queries on upstreams and their prices."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.core.clock import now
from gateway.models import Price, Upstream


async def upstreams(db: AsyncSession, project_id: UUID) -> Sequence[Upstream]:
    """Every upstream of the project, oldest first."""
    return (await db.scalars(select(Upstream).where(Upstream.project_id == project_id).order_by(Upstream.id))).all()


async def upstream(db: AsyncSession, project_id: UUID, upstream_id: UUID) -> Upstream | None:
    """One upstream of the project."""
    return (
        await db.scalars(select(Upstream).where(Upstream.project_id == project_id, Upstream.id == upstream_id))
    ).one_or_none()


async def upstream_named(db: AsyncSession, project_id: UUID, name: str) -> Upstream | None:
    """The project's upstream of that name."""
    return (
        await db.scalars(select(Upstream).where(Upstream.project_id == project_id, Upstream.name == name))
    ).one_or_none()


async def prices_in_force(db: AsyncSession, project_id: UUID) -> dict[UUID, Price]:
    """The price that holds now for each upstream's calls whatever their model."""
    rows = await db.scalars(
        select(Price)
        .ext(distinct_on(Price.upstream_id))
        .where(
            Price.project_id == project_id,
            Price.upstream_id.is_not(None),
            Price.model.is_(None),
            Price.effective_from <= now(),
        )
        .order_by(Price.upstream_id, Price.effective_from.desc(), Price.id.desc())
    )
    return {price.upstream_id: price for price in rows if price.upstream_id}
