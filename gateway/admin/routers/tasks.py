"""Owns the routes of tasks, and starting a run of one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from fastapi import status

from gateway.admin.edge import Database, ProjectId, admin_router, wake
from gateway.admin.repository import tasks as repository
from gateway.admin.schemas.common import Created, Named
from gateway.admin.schemas.runs import RunIn
from gateway.admin.schemas.tasks import RubricOut, RunConfigOut, RunDefaults, TaskDetail, TaskPatch, TaskRow
from gateway.core.clock import now
from gateway.core.errors import not_found
from gateway.runs import service as runs
from gateway.runs.schemas import parse_bars
from gateway.tasks import service as tasks

router = admin_router("tasks", "/projects/{project_id}/tasks")

_VOLUME = timedelta(days=30)


@router.get("")
async def list_tasks(project_id: ProjectId, db: Database) -> list[TaskRow]:
    """Tasks with their traffic, the busiest first."""
    return await repository.tasks(db, project_id)


@router.get("/{task_id}")
async def get_task(project_id: ProjectId, task_id: UUID, db: Database) -> TaskDetail:
    """A task with its volume, rubric and datasets, and what a run of it would start with."""
    rows = await repository.tasks(db, project_id, task_id)
    if not rows:
        raise not_found("task", task_id)
    rubric = await repository.rubric(db, project_id, task_id)
    judges = await repository.judges(db, project_id)
    forbidden = await repository.forbidden_teachers(db, project_id, task_id)
    return TaskDetail(
        **rows[0].model_dump(),
        aliases=await repository.aliases(db, project_id, task_id),
        days=await repository.days(db, project_id, task_id, now() - _VOLUME),
        rubric=RubricOut.model_validate(rubric) if rubric else None,
        dataset_versions=await repository.dataset_versions(db, project_id, task_id),
        run_defaults=RunDefaults(
            config=RunConfigOut(),
            bars=parse_bars(None),
            judges=[Named.model_validate(judge) for judge in judges],
            teachers_forbidden=[Named.model_validate(teacher) for teacher in forbidden],
        ),
    )


@router.patch("/{task_id}", status_code=status.HTTP_204_NO_CONTENT)
async def change_task(project_id: ProjectId, task_id: UUID, body: TaskPatch, db: Database) -> None:
    """Renames a task, or takes up or ignores a suggested one."""
    await db.run_sync(lambda session: tasks.update_task(session, project_id, task_id, name=body.name, state=body.state))
    await db.commit()


@router.post("/{task_id}/runs", status_code=status.HTTP_201_CREATED)
async def start_run(project_id: ProjectId, task_id: UUID, body: RunIn, db: Database) -> Created:
    """Queues a run: freeze, warm start, GRPO, the rival, evaluation."""
    config = body.config.model_dump(mode="json", exclude_unset=True)
    bars: list[Any] | None = None if body.bars is None else [bar.model_dump(mode="json") for bar in body.bars]
    run = await db.run_sync(
        lambda session: runs.create_run(
            session, project_id, task_id, config=config, judge_upstream_id=body.judge_upstream_id, bars=bars
        )
    )
    await db.commit()
    await wake(run.id)
    return Created(id=run.id)
