"""Owns the one running supervisor of a home: its lock, what it wrote down, what a killed one left behind.

Must not start anything, and ends only processes that are proven to be of this home.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.core.errors import StepdownError
from gateway.core.processes import Identity, end, family, identify, marked

# In the environment of every process that the supervisor starts, so that their descendants can be found too.
MARK = "STEPDOWN_SUPERVISOR"


@dataclass
class State:
    """What `stepdown status` shows, and what the next start needs to clean up after a killed one."""

    supervisor: Identity
    token: str
    address: str
    phase: str = "starting"  # starting | up | stopping | stopped
    error: str = ""
    children: list[dict[str, Any]] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return self.supervisor.alive()


def read_state(home: Path) -> State | None:
    """The state of the last supervisor of this home, running or not."""
    try:
        raw = json.loads((home / "state.json").read_text())
        return State(**{**raw, "supervisor": Identity(**raw["supervisor"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_state(home: Path, state: State) -> None:
    """Replaces the file whole: a reader never sees half of it."""
    temporary = home / f"state.json.{os.getpid()}"
    fields = {**vars(state), "supervisor": vars(state.supervisor)}
    temporary.write_text(json.dumps(fields, indent=1))
    temporary.replace(home / "state.json")


def refuse_second(home: Path) -> None:
    """Raises StepdownError when a supervisor of this home runs."""
    state = read_state(home)
    if state is not None and state.running:
        raise StepdownError(
            409,
            "already_running",
            f"Stepdown already runs in {home}: pid {state.supervisor.pid}, {state.address}",
            hint="See `stepdown status`; `stepdown down` stops it.",
        )


class Lock:
    """Held by the supervisor of a home for as long as it lives; the kernel lets go of it even after kill -9."""

    def __init__(self, home: Path) -> None:
        self.path = home / "supervisor.pid"
        self._file = self.path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            refuse_second(home)
            raise StepdownError(
                409,
                "already_running",
                f"Another `stepdown up` is just starting in {home}.",
                hint="See `stepdown status`; `stepdown down` stops it.",
            ) from None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        # Emptied, not deleted: somebody may hold the same file open and lock it next.
        self._file.truncate(0)
        self._file.close()


def end_orphans(home: Path) -> list[str]:
    """Ends what a killed supervisor left running, engines last. Returns the names. Needs the lock."""
    state = read_state(home)
    if state is None or state.running:
        return []
    names = []
    engines, others = _partition(state.children)
    for child in others:
        identity = Identity(child["pid"], child["started"])
        if identity.alive():
            names.append(child["name"])
            end(family(identity.pid), grace_s=5)
    last = {process.pid for child in engines for process in family(child["pid"])}
    end([stray for stray in marked(MARK, state.token) if stray.pid not in last], grace_s=5)
    for child in engines:
        identity = Identity(child["pid"], child["started"])
        if identity.alive():
            names.append(child["name"])
            end(family(identity.pid), grace_s=10, first=signal.Signals(child["stop_signal"]))
    return names


def _partition(children: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    live = [child for child in children if child.get("pid")]
    return [c for c in live if c["engine"]], [c for c in live if not c["engine"]]


def own_identity() -> Identity:
    identity = identify(os.getpid())
    assert identity is not None
    return identity
