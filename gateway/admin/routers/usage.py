"""Owns the routes of volume, money and latency."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Query

from gateway.admin.edge import Database, ProjectId, admin_router
from gateway.admin.repository import overview as overview_repository
from gateway.admin.repository import usage as repository
from gateway.admin.schemas.usage import OverviewOut, UsageOut
from gateway.core.clock import now

router = admin_router("usage", "/projects/{project_id}")


@router.get("/usage")
async def get_usage(project_id: ProjectId, db: Database, days: Annotated[int, Query(ge=1, le=366)] = 30) -> UsageOut:
    """What the last days cost: per day (UTC), per model name, per who answered."""
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight - timedelta(days=days - 1)
    return UsageOut(
        since=since,
        days=days,
        totals=await repository.totals(db, project_id, since),
        judge_spend=await repository.judge_spend(db, project_id, since),
        uncaptured_spend=await repository.uncaptured_spend(db, project_id, since),
        by_day=await repository.by_day(db, project_id, since),
        by_alias=await repository.by_alias(db, project_id, since),
        by_served_by=await repository.by_served_by(db, project_id, since),
        by_day_served_by=await repository.by_day_served_by(db, project_id, since),
    )


@router.get("/overview")
async def get_overview(project_id: ProjectId, db: Database) -> OverviewOut:
    """How far the project has come, and its last 24 hours."""
    since = now() - timedelta(hours=24)
    hours = await repository.hours(db, project_id, since)
    return OverviewOut(
        setup=await overview_repository.setup(db, project_id),
        calls_total=await overview_repository.call_count(db, project_id),
        last_day=await repository.totals(db, project_id, since),
        student_calls=sum(hour.student for hour in hours),
        hours=hours,
        students=await overview_repository.student_lines(db, project_id, since),
    )
