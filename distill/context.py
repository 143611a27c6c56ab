"""Owns what every phase of a run shares: the run's facts, fenced writes, steps with their saved state.

Must not know any phase. The order of a step is: save the state under a new name, commit the row, forget older states.
So a row's state is always on disk, and a kill at any moment loses the step that was under way and nothing else.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from distill.outcomes import ENDING, Stopped
from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.models import Run
from gateway.runs import lease, progress
from gateway.runs.lease import Lease
from gateway.runs.schemas import Phase, RunConfig

log = logging.getLogger(__name__)
T = TypeVar("T")
PATIENCE_S = 120.0
"""How long a write waits for a database that is away."""


@dataclass(frozen=True)
class Saved:
    """The state after a finished step: its number (0: none yet), its folder, and the phase's own memory."""

    step: int
    folder: Path | None
    memory: dict[str, Any]


@dataclass(frozen=True)
class StepResult:
    """What a finished step leaves: its numbers, the samples and sequences behind them, and whether it is the phase's
    best so far."""

    metrics: dict[str, float]
    seconds: float
    rollouts: Sequence[progress.RolloutRecord] = ()
    validation: dict[str, float] | None = None
    best: bool = False
    sequences: Sequence[progress.SequenceRecord] = ()


class RunContext:
    """One trainer's view of its run."""

    def __init__(self, held: Lease, run: Run) -> None:
        self.lease = held
        self.run_id: UUID = run.id
        self.project_id: UUID = run.project_id
        self.task_id: UUID = run.task_id
        self.judge_upstream_id: UUID | None = run.judge_upstream_id
        self.config = RunConfig.model_validate(run.config)
        self.folder = settings().runs_dir / str(run.id)
        self.base_dir = settings().models_dir / run.base_model

    def commit(self, write: Callable[[Session, Run], T]) -> T:
        """Runs `write` in one transaction under the lease. Waits for a database that is away.

        Raises LeaseLost, and Stopped once the trainer was asked to end.

        `write` may run twice, when the answer to a commit was lost: it has to leave the same rows then.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if ENDING.is_set():
                raise Stopped
            try:
                with session_scope() as session:
                    return write(session, lease.held(session, self.lease))
            except (OperationalError, InterfaceError) as error:
                if not _is_away(error) or time.monotonic() > deadline:
                    raise
                log.warning("the database is away, trying again: %s", error.orig)
                time.sleep(0.5)

    def read(self, query: Callable[[Session], T]) -> T:
        """Runs a query in a transaction of its own. Waits for a database that is away; raises LeaseLost."""
        return self.commit(lambda session, _: query(session))

    def event(self, kind: str, message: str) -> None:
        """Adds a line to the run's story, and to the log."""
        log.info("%s: %s", kind, message)
        self.commit(lambda session, run: progress.add_event(session, run, kind, message))

    def last_step(self, phase: Phase) -> int:
        """The number of the phase's last finished step; 0 before the first."""
        last = self.read(lambda session: progress.last_step(session, self.run_id, phase))
        return last.step if last else 0

    def saved(self, phase: Phase) -> Saved:
        """The state after the phase's last finished step."""
        last = self.read(lambda session: progress.last_step(session, self.run_id, phase))
        if last is None:
            return Saved(0, None, {})
        folder = self._state(phase, last.step, last.epoch)
        memory = json.loads((folder / "memory.json").read_text())
        return Saved(last.step, folder, memory)

    def finish_step(
        self, phase: Phase, step: int, result: StepResult, save: Callable[[Path], None], memory: dict[str, Any]
    ) -> None:
        """Saves the state through `save` and writes the step, in this order; then forgets what is needed no more."""
        folder = self._state(phase, step, self.lease.epoch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        save(folder)
        (folder / "memory.json").write_text(json.dumps(memory))

        def write(session: Session, run: Run) -> None:
            progress.finish_step(
                session,
                run,
                phase,
                step,
                metrics=result.metrics,
                seconds=result.seconds,
                rollouts=result.rollouts,
                sequences=result.sequences,
            )
            if result.best:
                path = str(folder.relative_to(settings().runs_dir))
                progress.keep_checkpoint(session, run, phase, step, path=path, validation=result.validation or {})

        self.commit(write)
        self._forget(phase, folder)

    def take_over(self, source: Phase, target: Phase) -> None:
        """Makes what `source` has done the beginning of `target`: its steps, its last state, its best checkpoint."""
        last = self.read(lambda session: progress.last_step(session, self.run_id, source))
        assert last is not None, f"{source} has a step"
        folder = self._state(target, last.step, self.lease.epoch)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._state(source, last.step, last.epoch), folder)
        self.commit(lambda session, run: progress.take_over(session, run, source, target))

    def best(self, phase: Phase) -> tuple[UUID, Path, dict[str, Any]] | None:
        """The phase's chosen checkpoint: its id, folder and validation; None where the phase has none."""
        found = self.read(lambda session: progress.checkpoint(session, self.run_id, phase))
        return None if found is None else (found.id, settings().runs_dir / found.path, found.validation)

    def _state(self, phase: Phase, step: int, epoch: int) -> Path:
        # The epoch is part of the name: a fenced trainer that has not ended yet writes beside us, not over us.
        return self.folder / phase / f"step-{step:05d}-epoch-{epoch}"

    def _forget(self, phase: Phase, last: Path) -> None:
        best = self.best(phase)
        keep = {last, best[1] if best else last}
        for folder in last.parent.iterdir():
            if folder not in keep:
                shutil.rmtree(folder, ignore_errors=True)


def _is_away(error: DBAPIError) -> bool:
    """Whether the server was not there, or is going or coming: SQLSTATE classes 08 and 57P, or no answer at all."""
    state = getattr(error.orig, "sqlstate", None)
    return state is None or state.startswith(("08", "57P"))
