"""Owns queries on tasks with their traffic, rubric and dataset versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.repository.windows import first_id_at, succeeded
from gateway.admin.schemas.tasks import AliasVolume, DatasetVersionOut, DayVolume, TaskRow
from gateway.models import Call, Dataset, DatasetVersion, Rubric, Task, Upstream


def _traffic(project_id: UUID) -> Select[*tuple[Any, ...]]:
    good = succeeded()
    return (
        select(
            Call.task_id,
            func.count().label("calls"),
            func.count().filter(Call.trainable).label("trainable_calls"),
            func.count().filter(Call.served_by == "student").label("student_calls"),
            func.coalesce(func.sum(Call.cost), 0).label("spend"),
            func.max(Call.received_at).label("last_call_at"),
            func.percentile_cont(0.5).within_group(Call.latency_ms).filter(good).label("p50_ms"),
            func.percentile_cont(0.95).within_group(Call.latency_ms).filter(good).label("p95_ms"),
        )
        .where(Call.project_id == project_id, Call.task_id.is_not(None))
        .group_by(Call.task_id)
    )


async def tasks(db: AsyncSession, project_id: UUID, task_id: UUID | None = None) -> list[TaskRow]:
    """Every task of the project, or the one, the busiest first."""
    traffic = _traffic(project_id)
    if task_id:
        traffic = traffic.where(Call.task_id == task_id)
    seen = traffic.subquery()
    query = (
        select(Task, *(column for column in seen.c if column.name != "task_id"))
        .outerjoin(seen, seen.c.task_id == Task.id)
        .where(Task.project_id == project_id)
        .order_by(seen.c.calls.desc().nulls_last(), Task.id.desc())
    )
    if task_id:
        query = query.where(Task.id == task_id)
    return [_task_row(row.Task, row._mapping) for row in await db.execute(query)]


def _task_row(task: Task, traffic: Any) -> TaskRow:
    own = ("id", "slug", "name", "state", "system_preview", "created_at")
    fields: dict[str, Any] = {name: getattr(task, name) for name in own}
    fields |= {name: traffic[name] or 0 for name in ("calls", "trainable_calls", "student_calls", "spend")}
    fields |= {name: traffic[name] for name in ("last_call_at", "p50_ms", "p95_ms")}
    return TaskRow(**fields)


async def task(db: AsyncSession, project_id: UUID, task_id: UUID) -> Task | None:
    """One task of the project."""
    return (await db.scalars(select(Task).where(Task.project_id == project_id, Task.id == task_id))).one_or_none()


async def aliases(db: AsyncSession, project_id: UUID, task_id: UUID) -> list[AliasVolume]:
    """The model names under which the app sends this task's calls, the commonest first."""
    query = (
        select(Call.alias, func.count())
        .where(Call.project_id == project_id, Call.task_id == task_id)
        .group_by(Call.alias)
        .order_by(func.count().desc())
    )
    return [AliasVolume(alias=alias, calls=calls) for alias, calls in await db.execute(query)]


async def days(db: AsyncSession, project_id: UUID, task_id: UUID, since: datetime) -> list[DayVolume]:
    """Volume of the task by day (UTC) and by who answered."""
    day = func.date_trunc("day", Call.received_at, "UTC")
    good = succeeded()
    query = (
        select(
            day,
            func.count().filter(good, Call.served_by == "upstream"),
            func.count().filter(good, Call.served_by == "student"),
            func.count().filter(~good),
            func.coalesce(func.sum(Call.cost), 0),
        )
        .where(Call.project_id == project_id, Call.task_id == task_id, Call.id >= first_id_at(since))
        .group_by(day)
        .order_by(day)
    )
    return [
        DayVolume(day=moment.date(), upstream=upstream, student=student, failed=failed, spend=spend)
        for moment, upstream, student, failed, spend in await db.execute(query)
    ]


async def rubric(db: AsyncSession, project_id: UUID, task_id: UUID) -> Rubric | None:
    """The task's newest rubric."""
    query = select(Rubric).where(Rubric.project_id == project_id, Rubric.task_id == task_id)
    return (await db.scalars(query.order_by(Rubric.version.desc()).limit(1))).one_or_none()


async def dataset_versions(db: AsyncSession, project_id: UUID, task_id: UUID) -> list[DatasetVersionOut]:
    """Frozen versions of the task's datasets, newest first."""
    query = (
        select(DatasetVersion, Dataset.name)
        .join(Dataset, Dataset.id == DatasetVersion.dataset_id)
        .where(DatasetVersion.project_id == project_id, Dataset.task_id == task_id)
        .order_by(DatasetVersion.id.desc())
        .limit(50)
    )
    return [
        DatasetVersionOut(
            id=version.id,
            dataset=name,
            version=version.version,
            counts=version.counts,
            test_openings=version.test_openings,
            created_at=version.created_at,
        )
        for version, name in await db.execute(query)
    ]


async def judges(db: AsyncSession, project_id: UUID) -> Sequence[Upstream]:
    """Upstreams whose terms allow judging, oldest first."""
    query = select(Upstream).where(Upstream.project_id == project_id, Upstream.judge_with == "allowed")
    return (await db.scalars(query.order_by(Upstream.id))).all()


async def forbidden_teachers(db: AsyncSession, project_id: UUID, task_id: UUID) -> Sequence[Upstream]:
    """Upstreams that answered this task but whose answers may not be trained on."""
    answered = select(Call.upstream_id).distinct().where(Call.project_id == project_id, Call.task_id == task_id)
    query = select(Upstream).where(
        Upstream.project_id == project_id, Upstream.train_on_output != "allowed", Upstream.id.in_(answered)
    )
    return (await db.scalars(query.order_by(Upstream.id))).all()
