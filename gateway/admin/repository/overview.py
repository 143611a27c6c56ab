"""Owns the queries of the overview: how far the project has come and what its students do."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, exists, func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.repository.windows import first_id_at, succeeded
from gateway.admin.schemas.usage import Setup, StudentLine
from gateway.models import ApiKey, Call, Route, RouteRevision, Run, Student, Task, Upstream


async def setup(db: AsyncSession, project_id: UUID) -> Setup:
    """Which steps on the way to a student of one's own are done."""
    answering = and_(RouteRevision.id == Route.revision_id, RouteRevision.stage.in_(["canary", "live"]))
    query = select(
        exists().where(Upstream.project_id == project_id).label("upstream"),
        exists().where(Route.project_id == project_id).label("route"),
        exists().where(ApiKey.project_id == project_id, ApiKey.revoked_at.is_(None)).label("key"),
        exists().where(Call.project_id == project_id).label("call"),
        exists().where(Task.project_id == project_id).label("task"),
        exists().where(Run.project_id == project_id).label("run"),
        exists().where(Student.project_id == project_id).label("student"),
        exists().where(Route.project_id == project_id, answering).label("live"),
    )
    return Setup.model_validate((await db.execute(query)).one())


async def call_count(db: AsyncSession, project_id: UUID) -> int:
    """Every call ever captured."""
    return await db.scalar(select(func.count()).select_from(Call).where(Call.project_id == project_id)) or 0


async def student_lines(db: AsyncSession, project_id: UUID, since: datetime) -> list[StudentLine]:
    """Each student, newest first, with the route it answers and what it answered since a moment."""
    answered = (
        select(
            Call.student_id,
            func.count().label("calls"),
            func.percentile_cont(0.5).within_group(Call.latency_ms).filter(succeeded()).label("p50_ms"),
        )
        .where(Call.project_id == project_id, Call.id >= first_id_at(since), Call.served_by == "student")
        .group_by(Call.student_id)
        .subquery()
    )
    in_force = (
        select(RouteRevision.student_id, RouteRevision.stage, RouteRevision.share)
        .join(Route, Route.revision_id == RouteRevision.id)
        .where(Route.project_id == project_id, RouteRevision.student_id.is_not(None))
        .ext(distinct_on(RouteRevision.student_id))
        .order_by(RouteRevision.student_id, RouteRevision.share.desc())
        .subquery()
    )
    query = (
        select(
            Student.id,
            Student.name,
            Student.task_id,
            Task.name.label("task_name"),
            in_force.c.stage,
            in_force.c.share,
            func.coalesce(answered.c.calls, 0).label("calls"),
            answered.c.p50_ms,
        )
        .join(Task, Task.id == Student.task_id)
        .outerjoin(in_force, in_force.c.student_id == Student.id)
        .outerjoin(answered, answered.c.student_id == Student.id)
        .where(Student.project_id == project_id)
        .order_by(Student.id.desc())
        .limit(20)
    )
    return [StudentLine.model_validate(row) for row in await db.execute(query)]
