"""The trainer process: `python -m distill.train RUN_ID --epoch E`. Owns the order of a run's phases and its last word.

It is started with a lease (`distill.trainers`), keeps it while it works, and goes on where the last finished step left
off. Whatever ends it, what it started is gone before another trainer may begin. Must not know what a phase does.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import traceback
from types import FrameType
from uuid import UUID

from sqlalchemy.orm import Session

from distill import phases, trainers
from distill.context import RunContext
from distill.heartbeat import LOST, Heartbeat
from distill.lab import Lab
from distill.outcomes import ENDING, Hopeless, Paused, Stopped
from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.logs import write_logs
from gateway.core.settings import settings
from gateway.models import Run
from gateway.runs import lease, progress
from gateway.runs.lease import Lease, LeaseLost
from gateway.runs.schemas import PHASES, Phase
from rl.judge.rubric import RubricError
from rl.render import RenderError
from rl.trainer import TrainingError, UnsupportedModelError
from rl.types import MaskError

log = logging.getLogger(__name__)
HOPELESS = (Hopeless, RenderError, MaskError, RubricError, TrainingError, UnsupportedModelError)
BACK_OFF_S = (2.0, 30.0, 120.0)
"""Seconds before the next attempt, by the number of failures since the last finished step."""


def main(arguments: list[str] | None = None) -> int:
    """Works on the run until it is done or must not go on; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m distill.train", description=__doc__)
    parser.add_argument("run_id", type=UUID)
    parser.add_argument("--epoch", type=int, required=True, help="the lease's epoch, from whoever took it")
    given = parser.parse_args(arguments)
    write_logs()
    held = Lease(given.run_id, given.epoch)
    heartbeat = Heartbeat(held)
    try:
        heartbeat.beat()
    except LeaseLost:
        log.error("run %s: epoch %d does not hold the lease", given.run_id, given.epoch)
        return LOST
    heartbeat.start()
    signal.signal(signal.SIGTERM, _on_term)
    _enter_workplace(held)
    return _work(held, heartbeat)


def work(ctx: RunContext, lab: Lab, first: Phase) -> None:
    """Every phase from `first` on, in order. Each skips what it finished before."""
    for phase in PHASES[PHASES.index(first) : -1]:
        _enter(ctx, phase)
        phases.run(phase, ctx, lab)
    _enter(ctx, "done")


def _work(held: Lease, heartbeat: Heartbeat) -> int:
    """Works, and turns whatever ended it into the run's state."""
    lab: Lab | None = None

    def last_word(state: str, error: str | None = None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        heartbeat.stop()
        # Before the engines are closed, which takes seconds: whoever asks us to end may not wait that long.
        with session_scope() as session:
            if state == "again":
                _try_again(session, held, error or "")
            elif state == "queued":
                lease.hand_back(session, held)
            else:
                lease.stop(session, held, state, error)

    try:
        with session_scope() as session:
            row = lease.held(session, held)
            ctx, first = RunContext(held, row), row.phase
        lab = Lab(ctx)
        work(ctx, lab, first)  # type: ignore[arg-type]  # the column holds a phase
        last_word("succeeded")
    except LeaseLost:
        log.error("run %s: the lease of epoch %d is lost", held.run_id, held.epoch)
        heartbeat.stop()
        return LOST
    except Stopped:
        last_word("queued")
    except Paused as reason:
        last_word("paused", str(reason))
    except HOPELESS as error:
        traceback.print_exc()
        last_word("failed", str(error))
    except StepdownError as error:
        traceback.print_exc()
        # Below 500 the request itself is wrong: the same again would fail the same way.
        last_word("failed" if error.status < 500 else "again", str(error))
    except Exception as error:  # whatever it is, the run's row has to say why its trainer ended
        traceback.print_exc()
        last_word("again", f"{type(error).__name__}: {error}")
        return 1
    finally:
        if lab is not None:
            lab.close()
    return 0


def _enter(ctx: RunContext, phase: Phase) -> None:
    ctx.commit(lambda session, run: progress.enter_phase(session, run, phase))


def _try_again(session: Session, held: Lease, error: str) -> None:
    run: Run = lease.held(session, held)
    lease.retry_later(session, held, error, BACK_OFF_S[min(run.attempts, len(BACK_OFF_S) - 1)])


def _enter_workplace(held: Lease) -> None:
    # Read before the working directory changes: STEPDOWN_HOME may be a relative path.
    os.environ["STEPDOWN_HOME"] = str(settings().root)
    folder = trainers.workplace(held)
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)


def _on_term(_number: int, _frame: FrameType | None) -> None:
    ENDING.set()
    raise Stopped


if __name__ == "__main__":
    raise SystemExit(main())
