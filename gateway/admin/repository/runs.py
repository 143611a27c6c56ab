"""Owns queries on runs, their steps, rollouts, sequences and events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Float, Row, and_, cast, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.schemas.runs import DriftOut, GroupOut, RolloutOut, SequenceOut, TokenOut, TokenSteps
from gateway.models import (
    DatasetRow,
    DatasetVersion,
    Evaluation,
    Rollout,
    Rubric,
    Run,
    RunEvent,
    RunStep,
    Task,
    TrainedSequence,
    Upstream,
)
from gateway.runs.schemas import PHASES


@dataclass(frozen=True)
class PhaseProgress:
    """What the finished steps of one phase add up to."""

    step: int
    seconds: float
    tokens: int


@dataclass(frozen=True)
class RunView:
    """A run with the names and numbers its page shows beside it."""

    run: Run
    task: str
    judge: str | None = None
    rubric_version: int | None = None
    dataset_version: int | None = None
    dataset_counts: dict[str, Any] | None = None
    evaluation_id: UUID | None = None


async def runs(db: AsyncSession, project_id: UUID, task_id: UUID | None = None) -> list[RunView]:
    """Runs of the project, newest first."""
    query = (
        select(Run, Task.name).join(Task, Task.id == Run.task_id).where(Run.project_id == project_id).limit(200)
    ).order_by(Run.id.desc())
    if task_id:
        query = query.where(Run.task_id == task_id)
    return [RunView(run, name) for run, name in await db.execute(query)]


async def run(db: AsyncSession, project_id: UUID, run_id: UUID) -> RunView | None:
    """One run of the project."""
    query = (
        select(
            Run,
            Task.name,
            Upstream.name,
            Rubric.version,
            DatasetVersion.version,
            DatasetVersion.counts,
            Evaluation.id,
        )
        .join(Task, Task.id == Run.task_id)
        .outerjoin(Upstream, and_(Upstream.id == Run.judge_upstream_id, Upstream.project_id == Run.project_id))
        .outerjoin(Rubric, and_(Rubric.id == Run.rubric_id, Rubric.project_id == Run.project_id))
        .outerjoin(
            DatasetVersion,
            and_(DatasetVersion.id == Run.dataset_version_id, DatasetVersion.project_id == Run.project_id),
        )
        .outerjoin(Evaluation, Evaluation.run_id == Run.id)
        .where(Run.project_id == project_id, Run.id == run_id)
    )
    row = (await db.execute(query)).one_or_none()
    return RunView(*row) if row else None


async def progress(db: AsyncSession, project_id: UUID, run_ids: Iterable[UUID]) -> dict[UUID, dict[str, PhaseProgress]]:
    """Finished steps of each phase of each run."""
    tokens = func.coalesce(func.sum(cast(RunStep.metrics["trained_tokens"].astext, Float)), 0)
    query = (
        select(RunStep.run_id, RunStep.phase, func.count(), func.sum(RunStep.seconds), tokens)
        .where(RunStep.project_id == project_id, RunStep.run_id.in_(list(run_ids)))
        .group_by(RunStep.run_id, RunStep.phase)
    )
    found: dict[UUID, dict[str, PhaseProgress]] = defaultdict(dict)
    for run_id, phase, count, seconds, trained in await db.execute(query):
        found[run_id][phase] = PhaseProgress(count, seconds, int(trained))
    return found


async def last_metrics(db: AsyncSession, run: Run) -> dict[str, Any]:
    """The figures of the last finished step of the phase that the run is in; none before its first."""
    query = (
        select(RunStep.metrics)
        .where(RunStep.project_id == run.project_id, RunStep.run_id == run.id, RunStep.phase == run.phase)
        .order_by(RunStep.step.desc())
        .limit(1)
    )
    return (await db.scalars(query)).one_or_none() or {}


async def drift(db: AsyncSession, run: Run) -> list[DriftOut]:
    """What each learning phase said of its drift at its end."""
    query = (
        select(RunStep.phase, RunStep.step, RunStep.metrics)
        .where(RunStep.project_id == run.project_id, RunStep.run_id == run.id, RunStep.metrics.has_key("drift_weights"))
        .order_by(RunStep.step)
    )
    latest = {phase: (step, metrics) for phase, step, metrics in await db.execute(query)}
    return [_drift(phase, *latest[phase]) for phase in PHASES if phase in latest]


def _drift(phase: str, step: int, metrics: dict[str, Any]) -> DriftOut:
    own = {name: metrics[f"drift_{name}"] for name in ("weights", "moved", "kl")}
    return DriftOut(phase=phase, step=step, **own, forgotten_kl=metrics["forgotten_kl"], forgotten=metrics["forgotten"])


async def steps(
    db: AsyncSession, project_id: UUID, run_id: UUID, *, phase: str | None, after: int | None
) -> Sequence[RunStep]:
    """Finished steps in order, of one phase and after a step where those are given."""
    query = select(RunStep).where(RunStep.project_id == project_id, RunStep.run_id == run_id)
    if phase:
        query = query.where(RunStep.phase == phase)
    if after is not None:
        query = query.where(RunStep.step > after)
    return (await db.scalars(query.order_by(RunStep.phase, RunStep.step).limit(20_000))).all()


async def rollout_steps(db: AsyncSession, project_id: UUID, run_id: UUID) -> list[int]:
    """Steps that have rollouts, in order."""
    query = select(Rollout.step).distinct().where(Rollout.project_id == project_id, Rollout.run_id == run_id)
    return sorted((await db.scalars(query)).all())


async def rollouts(db: AsyncSession, project_id: UUID, run_id: UUID, step: int) -> list[GroupOut]:
    """A step's groups: the prompt, then the anchor and every completion."""
    query = (
        select(Rollout, DatasetRow.messages)
        .outerjoin(DatasetRow, and_(DatasetRow.id == Rollout.row_id, DatasetRow.project_id == Rollout.project_id))
        .where(Rollout.project_id == project_id, Rollout.run_id == run_id, Rollout.step == step)
        .order_by(Rollout.group, Rollout.index)
    )
    groups: dict[int, list[Row[Rollout, list[Any]]]] = defaultdict(list)
    for row in await db.execute(query):
        groups[row[0].group].append(row)
    return [_group(rows) for rows in groups.values()]


def _group(rows: list[Row[Rollout, list[Any]]]) -> GroupOut:
    first = rows[0][0]
    members = [_rollout(row[0]) for row in rows]
    return GroupOut(
        group=first.group,
        row_id=first.row_id,
        kept=any(member.kept for member in members),
        prompt=rows[0][1] or [],
        rollouts=members,
    )


def _rollout(row: Rollout) -> RolloutOut:
    fields = {name: getattr(row, name) for name in RolloutOut.model_fields if name != "anchor"}
    return RolloutOut(**fields, anchor=row.index < 0)


async def token_steps(db: AsyncSession, project_id: UUID, run_id: UUID) -> list[TokenSteps]:
    """The steps of each phase whose sequences are kept."""
    mine = (TrainedSequence.project_id == project_id, TrainedSequence.run_id == run_id)
    query = select(TrainedSequence.phase, TrainedSequence.step).where(*mine).distinct()
    steps: dict[str, list[int]] = defaultdict(list)
    for phase, step in (await db.execute(query.order_by(TrainedSequence.step))).all():
        steps[phase].append(step)
    return [TokenSteps(phase=phase, steps=steps[phase]) for phase in PHASES if phase in steps]


async def sequences(db: AsyncSession, project_id: UUID, run_id: UUID, phase: str, step: int) -> list[SequenceOut]:
    """What a step learned from, as far as it was kept."""
    query = select(TrainedSequence).where(
        TrainedSequence.project_id == project_id,
        TrainedSequence.run_id == run_id,
        TrainedSequence.phase == phase,
        TrainedSequence.step == step,
    )
    rows = (await db.scalars(query.order_by(TrainedSequence.index))).all()
    return [_sequence(row) for row in rows]


def _sequence(row: TrainedSequence) -> SequenceOut:
    fields = {name: getattr(row, name) for name in SequenceOut.model_fields if name != "tokens"}
    names = tuple(TokenOut.model_fields)
    return SequenceOut(**fields, tokens=[TokenOut(**dict(zip(names, token, strict=True))) for token in row.tokens])


async def events(db: AsyncSession, project_id: UUID, run_id: UUID) -> Sequence[RunEvent]:
    """The run's story, newest first."""
    query = select(RunEvent).where(RunEvent.project_id == project_id, RunEvent.run_id == run_id)
    return (await db.scalars(query.order_by(RunEvent.id.desc()).limit(500))).all()
