"""Owns queries on volume, money and latency over a period."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, SQLColumnExpression, and_, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.repository.windows import first_id_at, succeeded
from gateway.admin.schemas.usage import (
    HourVolume,
    UsageByAlias,
    UsageByDay,
    UsageByDayServer,
    UsageByServer,
    UsageTotals,
)
from gateway.models import Call, LedgerEntry, Student, Upstream


def _totals() -> list[ColumnElement[Any]]:
    good = succeeded()
    return [
        func.count().label("calls"),
        func.count().filter(~good).label("failed"),
        func.coalesce(func.sum(Call.prompt_tokens), 0).label("prompt_tokens"),
        func.coalesce(func.sum(Call.cached_tokens), 0).label("cached_tokens"),
        func.coalesce(func.sum(Call.completion_tokens), 0).label("completion_tokens"),
        func.coalesce(func.sum(LedgerEntry.amount), 0).label("spend"),
        func.percentile_cont(0.5).within_group(Call.latency_ms).filter(good).label("p50_ms"),
        func.percentile_cont(0.95).within_group(Call.latency_ms).filter(good).label("p95_ms"),
    ]


def _calls(project_id: UUID, since: datetime, *groups: SQLColumnExpression[Any]) -> Select[*tuple[Any, ...]]:
    """Totals per group over the calls since a moment, each call with its charge."""
    charge = and_(LedgerEntry.source_id == Call.id, LedgerEntry.project_id == Call.project_id)
    return (
        select(*groups, *_totals())
        .select_from(Call)
        .outerjoin(LedgerEntry, charge)
        .where(Call.project_id == project_id, Call.id >= first_id_at(since))
        .group_by(*groups)
    )


def _day() -> ColumnElement[datetime]:
    return func.date_trunc("day", Call.received_at, "UTC")


def _fields(row: Any) -> dict[str, Any]:
    return {name: row._mapping[name] for name in UsageTotals.model_fields}


async def totals(db: AsyncSession, project_id: UUID, since: datetime) -> UsageTotals:
    """Everything since a moment, as one line."""
    return UsageTotals(**_fields((await db.execute(_calls(project_id, since))).one()))


async def by_day(db: AsyncSession, project_id: UUID, since: datetime) -> list[UsageByDay]:
    """Totals of each day (UTC) that had calls."""
    day = _day().label("day")
    rows = await db.execute(_calls(project_id, since, day).order_by(day))
    return [UsageByDay(day=_date(row.day), **_fields(row)) for row in rows]


async def by_alias(db: AsyncSession, project_id: UUID, since: datetime) -> list[UsageByAlias]:
    """Totals of each model name that apps sent, the dearest first."""
    rows = await db.execute(_calls(project_id, since, Call.alias))
    found = [UsageByAlias(alias=row.alias, **_fields(row)) for row in rows]
    return sorted(found, key=lambda line: (-line.spend, -line.calls))


async def by_served_by(db: AsyncSession, project_id: UUID, since: datetime) -> list[UsageByServer]:
    """Totals of each upstream and student that answered."""
    grouped = _calls(project_id, since, Call.served_by, Call.upstream_id, Call.student_id).subquery()
    student = and_(grouped.c.served_by == "student", Student.id == grouped.c.student_id)
    query = (
        select(grouped, func.coalesce(Student.name, Upstream.name).label("name"))
        .outerjoin(Student, and_(student, Student.project_id == project_id))
        .outerjoin(Upstream, and_(Upstream.id == grouped.c.upstream_id, Upstream.project_id == project_id))
    )
    rows = await db.execute(query.order_by(grouped.c.calls.desc()))
    return [UsageByServer(served_by=row.served_by, name=row.name, **_fields(row)) for row in rows]


async def by_day_served_by(db: AsyncSession, project_id: UUID, since: datetime) -> list[UsageByDayServer]:
    """Calls and money of each day by who answered."""
    day = _day().label("day")
    rows = await db.execute(_calls(project_id, since, day, Call.served_by).order_by(day))
    return [
        UsageByDayServer(day=_date(row.day), served_by=row.served_by, calls=row.calls, spend=row.spend) for row in rows
    ]


async def judge_spend(db: AsyncSession, project_id: UUID, since: datetime) -> Decimal:
    """What scoring by judges cost since a moment."""
    query = select(func.coalesce(func.sum(LedgerEntry.amount), 0)).where(
        LedgerEntry.project_id == project_id, LedgerEntry.kind == "judge", LedgerEntry.created_at >= since
    )
    return Decimal(await db.scalar(query) or 0)


async def uncaptured_spend(db: AsyncSession, project_id: UUID, since: datetime) -> Decimal:
    """What calls cost that were charged but, by their key's choice, not captured."""
    query = select(func.coalesce(func.sum(LedgerEntry.amount), 0)).where(
        LedgerEntry.project_id == project_id,
        LedgerEntry.kind == "call",
        LedgerEntry.call_id.is_(None),
        LedgerEntry.created_at >= since,
    )
    return Decimal(await db.scalar(query) or 0)


async def hours(db: AsyncSession, project_id: UUID, since: datetime) -> list[HourVolume]:
    """Volume of each hour (UTC) that had calls, by who answered."""
    good = succeeded()
    hour = func.date_trunc("hour", Call.received_at, "UTC").label("hour")
    query = (
        select(
            hour,
            func.count().filter(good, Call.served_by == "upstream").label("upstream"),
            func.count().filter(good, Call.served_by == "student").label("student"),
            func.count().filter(~good).label("failed"),
            func.percentile_cont(0.5).within_group(Call.latency_ms).filter(good).label("p50_ms"),
        )
        .where(Call.project_id == project_id, Call.id >= first_id_at(since))
        .group_by(hour)
        .order_by(hour)
    )
    return [HourVolume.model_validate(row) for row in await db.execute(query)]


def _date(moment: datetime) -> date:
    return moment.date()
