"""Owns what a run writes about itself: steps once each, rollouts, the best checkpoint of a phase, its story.

Every function that takes a run wants it locked under its epoch (`gateway.runs.lease.held`). Must not commit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.jsontext import storable
from gateway.models import Checkpoint, Rollout, Run, RunEvent, RunStep, TrainedSequence
from gateway.runs.repository import progress as repository
from gateway.runs.schemas import PHASES, Phase


@dataclass(frozen=True)
class RolloutRecord:
    """One sampled completion as the judge saw it; `index` -1 is the anchor, the teacher's own answer."""

    group: int
    index: int
    row_id: UUID
    completion: str
    tokens: int
    finish_reason: str | None = None
    reward: float | None = None
    advantage: float | None = None
    criteria: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    kept: bool = False


@dataclass(frozen=True)
class SequenceRecord:
    """One sequence that a step learned from. `tokens`: [id, text, trained, special, log-prob or None] each, in order,
    after the first `left_out`."""

    index: int
    row_id: UUID
    tokens: Sequence[Sequence[Any]]
    left_out: int = 0
    group: int | None = None
    reward: float | None = None
    advantage: float | None = None


SEQUENCE_STEPS = 10
"""Steps of a phase whose sequences are kept: the first, and the latest."""


def finish_step(
    session: Session,
    run: Run,
    phase: Phase,
    step: int,
    *,
    metrics: Mapping[str, float | None],
    seconds: float,
    rollouts: Sequence[RolloutRecord] = (),
    sequences: Sequence[SequenceRecord] = (),
) -> None:
    """Writes a finished step with its rollouts and the sequences that are to be seen, and forgives earlier failures.

    Writing it again under the same epoch changes nothing: a commit whose answer was lost may be repeated.
    """
    known = repository.step(session, run.id, phase, step)
    if known is not None:
        if known.epoch != run.lease_epoch:
            raise ValueError(f"step {step} of {phase} was written in epoch {known.epoch} already")
        return
    repository.add(
        session,
        RunStep(
            run_id=run.id,
            phase=phase,
            step=step,
            project_id=run.project_id,
            epoch=run.lease_epoch,
            metrics={name: value if math.isfinite(value or 0) else None for name, value in metrics.items()},
            seconds=seconds,
        ),
    )
    records = [Rollout(run_id=run.id, project_id=run.project_id, step=step, **storable(vars(r))) for r in rollouts]
    repository.add(session, *records)
    if sequences:
        kept = [
            TrainedSequence(run_id=run.id, project_id=run.project_id, phase=phase, step=step, **storable(vars(r)))
            for r in sequences
        ]
        repository.add(session, *kept)
        repository.forget_sequences(session, run.id, phase, SEQUENCE_STEPS)
    run.attempts, run.error = 0, None


def last_step(session: Session, run_id: UUID, phase: Phase) -> RunStep | None:
    """The phase's last finished step; None before the first."""
    return repository.last_step(session, run_id, phase)


def checkpoint(session: Session, run_id: UUID, phase: Phase) -> Checkpoint | None:
    """The phase's best checkpoint so far."""
    return repository.checkpoint(session, run_id, phase)


def take_over(session: Session, run: Run, source: Phase, target: Phase) -> None:
    """Writes the steps of `source` as the first of `target` too, with its best checkpoint."""
    for step in repository.steps(session, run.id, source):
        finish_step(session, run, target, step.step, metrics=step.metrics, seconds=step.seconds)
    best = repository.checkpoint(session, run.id, source)
    if best is not None:
        keep_checkpoint(session, run, target, best.step, path=best.path, validation=best.validation)


def keep_checkpoint(
    session: Session, run: Run, phase: Phase, step: int, *, path: str, validation: dict[str, float]
) -> Checkpoint:
    """Makes this the phase's checkpoint. The earlier one's row goes: a phase keeps its best."""
    repository.forget_checkpoints(session, run.id, phase)
    checkpoint = Checkpoint(
        run_id=run.id, project_id=run.project_id, phase=phase, step=step, path=path, validation=validation, chosen=True
    )
    repository.add(session, checkpoint)
    return checkpoint


def enter_phase(session: Session, run: Run, phase: Phase) -> None:
    """Moves the run on to its next phase. Going on to the phase it is in already changes nothing."""
    if run.phase == phase:
        return
    if PHASES.index(phase) < PHASES.index(run.phase):
        raise ValueError(f"run {run.id} cannot go back from {run.phase} to {phase}")
    run.phase = phase
    add_event(session, run, "phase", f"Phase {phase} begins." if phase != "done" else "Every phase is done.")


def add_event(session: Session, run: Run, kind: str, message: str) -> None:
    """Adds a line to the run's story."""
    text: str = storable(message)
    repository.add(
        session, RunEvent(run_id=run.id, project_id=run.project_id, kind=kind, message=text, created_at=now())
    )
