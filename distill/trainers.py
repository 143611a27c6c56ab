"""Owns trainer processes on this machine: starting one for a run, and clearing away what a dead one left.

Must not train, nor wait for a trainer: the run's row says how it goes, and whoever holds the lease writes it.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from gateway.core import processes
from gateway.core.db import session_scope
from gateway.core.logs import last_line
from gateway.core.processes import Identity
from gateway.core.settings import settings
from gateway.runs import lease

log = logging.getLogger(__name__)
THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "3000"}
"""Environment of a process that trains. Threads that spin long at every barrier make a step many times slower on a
machine that is also doing something else, and this one also serves; a moment's spinning (GNU's OpenMP) beats none."""


def workplace(held: lease.Lease) -> Path:
    """The folder that a trainer and everything it starts work in: that is how they are recognised later."""
    return _workplaces(held.run_id) / str(held.epoch)


def _workplaces(run_id: UUID) -> Path:
    return settings().runs_dir / str(run_id) / ".trainer"


def owner_name(identity: Identity) -> str:
    """How a process is written down as a lease's owner: machine, pid and start."""
    return f"{socket.gethostname()}/{identity.pid}/{identity.started}"


def my_name() -> str:
    """This process as a lease's owner."""
    identity = processes.identify(os.getpid())
    assert identity is not None, "this process runs"
    return owner_name(identity)


def is_gone(owner: str | None) -> bool:
    """Whether an owner is known to be dead: it was a process of this machine and runs no more."""
    host, _, rest = (owner or "").partition("/")
    pid, _, started = rest.partition("/")
    return host == socket.gethostname() and pid.isdigit() and not Identity(int(pid), started).alive()


def sweep() -> list[UUID]:
    """Starts each run whose lease is free or whose trainer on this machine is gone; returns those it started."""
    with session_scope() as session:
        runs = lease.unattended(session)
    return [run.run_id for run in runs if (run.free or is_gone(run.owner)) and start(run.run_id, run.owner)]


def start(run_id: UUID, gone: str | None = None) -> bool:
    """Takes the run's lease and starts its trainer; False where somebody else holds it or the run was given up.

    `gone`: an owner seen dead, whose lease need not run out. Nothing of an older trainer on this machine outlives
    this; one on another machine is fenced by its epoch and ends by itself.
    """
    dead = gone if is_gone(gone) else None
    journal = settings().logs_dir / f"run-{run_id}.log"
    with session_scope() as session:
        taken = lease.take(
            session, run_id, owner=my_name(), seconds=settings().lease_s, dead_owner=dead,
            last_words=last_line(journal),
        )  # fmt: skip
    if taken is None:
        return False
    clear(run_id)
    if taken.lease is None:
        return False
    launch = processes.Launch(
        [sys.executable, "-m", "distill.train", str(run_id), "--epoch", str(taken.lease.epoch)],
        env={
            "STEPDOWN_HOME": str(settings().root),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            **THREADS,
        },
    )
    child = processes.spawn(launch, journal)
    _hand_over(taken.lease, child.pid)
    # Nobody waits for the trainer, but somebody has to reap it: a zombie would keep its pid taken.
    threading.Thread(target=child.wait, name=f"reap-{child.pid}", daemon=True).start()
    log.info("run %s: trainer %d started with epoch %d", run_id, child.pid, taken.lease.epoch)
    return True


def _hand_over(held: lease.Lease, pid: int) -> None:
    """Writes the trainer down as owner at once: should it die before its first heartbeat, the sweep sees it gone."""
    identity = processes.identify(pid)
    if identity is not None:
        with suppress(lease.LeaseLost), session_scope() as session:
            lease.extend(session, held, owner_name(identity), settings().lease_s)


def clear(run_id: UUID) -> None:
    """Ends every trainer of the run on this machine and what those started, and removes their workplaces."""
    for folder in sorted(_workplaces(run_id).glob("*")):
        clear_workplace(folder)
        shutil.rmtree(folder, ignore_errors=True)


def clear_workplace(folder: Path) -> None:
    """Ends every process that works in `folder`, except the caller."""
    left = [process for process in processes.working_in(folder) if process.pid != os.getpid()]
    if left:
        log.warning("%s: ending %d processes that an earlier trainer left", folder, len(left))
        processes.end(left, grace_s=0)
