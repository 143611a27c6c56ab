"""Owns the routes of runs: progress, curves, rollouts, story, evidence, stopping and going on."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, status

from gateway.admin.edge import Database, ProjectId, admin_router, wake
from gateway.admin.repository import evaluations as evidence
from gateway.admin.repository import runs as repository
from gateway.admin.repository.runs import RunView
from gateway.admin.routers.evaluations import evaluation_out
from gateway.admin.schemas.common import Named
from gateway.admin.schemas.evaluations import EvaluationOut
from gateway.admin.schemas.runs import EventOut, RunDetail, RunRow, StepOut, StepRollouts, StepTokens
from gateway.admin.timeline import timeline
from gateway.core.errors import StepdownError, not_found
from gateway.models import Run
from gateway.runs import service as runs

router = admin_router("runs", "/projects/{project_id}/runs")


@router.get("")
async def list_runs(project_id: ProjectId, db: Database, task: Annotated[UUID | None, Query()] = None) -> list[RunRow]:
    """Runs, newest first."""
    views = await repository.runs(db, project_id, task)
    progress = await repository.progress(db, project_id, [view.run.id for view in views])
    return [_row(view, progress.get(view.run.id, {})) for view in views]


def _row(view: RunView, progress: dict[str, repository.PhaseProgress]) -> RunRow:
    line = timeline(view.run, progress)
    run = view.run
    return RunRow(
        id=run.id,
        task=Named(id=run.task_id, name=view.task),
        state=run.state,
        phase=run.phase,
        error=run.error,
        steps_done=line.steps_done,
        steps_planned=line.steps_planned,
        judge_spend=run.judge_spend,
        base_model=run.base_model,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


async def _found(db: Database, project_id: UUID, run_id: UUID) -> RunView:
    view = await repository.run(db, project_id, run_id)
    if view is None:
        raise not_found("run", run_id)
    return view


@router.get("/{run_id}")
async def get_run(project_id: ProjectId, run_id: UUID, db: Database) -> RunDetail:
    """A run with how far each phase is and the figures of its last finished step."""
    view = await _found(db, project_id, run_id)
    progress = (await repository.progress(db, project_id, [run_id])).get(run_id, {})
    run = view.run
    judge = Named(id=run.judge_upstream_id, name=view.judge) if run.judge_upstream_id and view.judge else None
    return RunDetail(
        **_row(view, progress).model_dump(),
        phases=timeline(run, progress).phases,
        drift=await repository.drift(db, run),
        metrics=await repository.last_metrics(db, run),
        config=run.config,
        bars=run.bars,
        judge=judge,
        rubric_version=view.rubric_version,
        dataset_version=view.dataset_version,
        dataset_counts=view.dataset_counts,
        attempts=run.attempts,
        evaluation_id=view.evaluation_id,
    )


@router.post("/{run_id}/cancel", status_code=status.HTTP_204_NO_CONTENT)
async def cancel_run(project_id: ProjectId, run_id: UUID, db: Database) -> None:
    """Stops a run for good."""
    await db.run_sync(lambda session: runs.cancel_run(session, project_id, run_id))
    await db.commit()


@router.post("/{run_id}/resume", status_code=status.HTTP_204_NO_CONTENT)
async def resume_run(project_id: ProjectId, run_id: UUID, db: Database) -> None:
    """Takes up a paused, failed or cancelled run from its last finished step."""
    run: Run = await db.run_sync(lambda session: runs.resume_run(session, project_id, run_id))
    await db.commit()
    await wake(run.id)


@router.get("/{run_id}/steps")
async def list_steps(
    project_id: ProjectId,
    run_id: UUID,
    db: Database,
    phase: Annotated[str | None, Query(max_length=20)] = None,
    after: Annotated[int | None, Query(description="Only steps beyond this one.")] = None,
) -> list[StepOut]:
    """Finished steps with their metrics, in order."""
    await _found(db, project_id, run_id)
    rows = await repository.steps(db, project_id, run_id, phase=phase, after=after)
    return [StepOut.model_validate(row) for row in rows]


@router.get("/{run_id}/rollouts")
async def list_rollouts(
    project_id: ProjectId,
    run_id: UUID,
    db: Database,
    step: Annotated[int | None, Query(description="Unset: the latest.")] = None,
) -> StepRollouts:
    """What was sampled in a step, with scores and reasons."""
    await _found(db, project_id, run_id)
    steps = await repository.rollout_steps(db, project_id, run_id)
    shown = step if step is not None else (steps[-1] if steps else None)
    groups = await repository.rollouts(db, project_id, run_id, shown) if shown is not None else []
    return StepRollouts(step=shown, steps=steps, groups=groups)


@router.get("/{run_id}/tokens")
async def list_tokens(
    project_id: ProjectId,
    run_id: UUID,
    db: Database,
    phase: Annotated[str | None, Query(max_length=20, description="Unset: the latest.")] = None,
    step: Annotated[int | None, Query(description="Unset: the phase's latest.")] = None,
) -> StepTokens:
    """A few sequences that a step learned from, token by token, with what was trained of them."""
    await _found(db, project_id, run_id)
    phases = await repository.token_steps(db, project_id, run_id)
    chosen = phase or (phases[-1].phase if phases else None)
    steps = next((known.steps for known in phases if known.phase == chosen), [])
    shown = step if step is not None else (steps[-1] if steps else None)
    if chosen is None or shown is None:
        return StepTokens(phases=phases, phase=chosen, step=shown, sequences=[])
    sequences = await repository.sequences(db, project_id, run_id, chosen, shown)
    return StepTokens(phases=phases, phase=chosen, step=shown, sequences=sequences)


@router.get("/{run_id}/events")
async def list_events(project_id: ProjectId, run_id: UUID, db: Database) -> list[EventOut]:
    """The run's story, newest first."""
    await _found(db, project_id, run_id)
    return [EventOut.model_validate(row) for row in await repository.events(db, project_id, run_id)]


@router.get("/{run_id}/evaluation")
async def get_run_evaluation(project_id: ProjectId, run_id: UUID, db: Database) -> EvaluationOut:
    """The evidence of a run. 404 until its evaluation has begun."""
    await _found(db, project_id, run_id)
    evaluation = await evidence.of_run(db, project_id, run_id)
    if evaluation is None:
        raise StepdownError(
            404,
            "evaluation_not_found",
            f"Run {run_id} has no evaluation yet.",
            hint="It begins when training has ended; `phase` tells.",
        )
    return evaluation_out(evaluation)
