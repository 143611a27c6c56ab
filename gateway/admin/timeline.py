"""Owns how far a run is, phase by phase, from its finished steps and its plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.admin.repository.runs import PhaseProgress
from gateway.admin.schemas.runs import PhaseOut
from gateway.models import Run
from gateway.runs.plan import planned_steps
from gateway.runs.schemas import PHASES, Phase, RunConfig

_WITHOUT_STEPS = ("freeze", "evaluate")


@dataclass(frozen=True)
class Timeline:
    """Every phase, and the sums over them. A phase that ended early plans no more than it did."""

    phases: list[PhaseOut]
    steps_done: int
    steps_planned: int


def timeline(run: Run, progress: dict[str, PhaseProgress]) -> Timeline:
    """The phases of a run in order."""
    planned = planned_steps(RunConfig.model_validate(run.config))
    current = PHASES.index(run.phase) if run.phase in PHASES else 0
    phases = [_phase(run, name, current, planned[name], progress.get(name)) for name in PHASES[:-1]]
    return Timeline(phases, sum(p.step for p in phases), sum(p.planned for p in phases))


def _phase(run: Run, name: Phase, current: int, planned: int, done: PhaseProgress | None) -> PhaseOut:
    step = done.step if done else 0
    place = PHASES.index(name)
    if place < current:
        # The plan of a phase that has ended is what it did: at its plateau SFT stops before its most.
        state = "done" if planned else "skipped"
        planned = step = step or (planned if name in _WITHOUT_STEPS else 0)
    elif place > current:
        state = "pending" if run.state not in ("failed", "cancelled") else "cancelled"
    else:
        state = "pending" if run.state == "queued" and not step else run.state
        if run.state == "succeeded":
            state = "done"
        elif run.state == "queued" and step:
            state = "running"
    return PhaseOut(
        name=name,
        state=state,
        step=step,
        planned=max(planned, step),
        seconds=done.seconds if done else 0.0,
        tokens=done.tokens if done else 0,
    )
