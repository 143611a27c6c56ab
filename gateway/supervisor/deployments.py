"""Owns the link between deployment rows and engine processes: reads what is wanted, writes what became of it.

Must not load a student: the engine process does, and marks its row ready itself.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ports import free_port
from gateway.core.processes import Launch
from gateway.supervisor import repository
from gateway.supervisor.child import Child, Phase
from gateway.supervisor.repository import Wanted
from gateway.supervisor.service import Policy, python

_POLICY = Policy(give_up="always", quick_s=120.0, first_delay_s=2.0)
_Note = Callable[[Session], None]


class Watch(threading.Thread):
    """Speaks to the database once a second, in a thread, so that a slow one never holds up the supervisor.

    `rows` is what was wanted at the last look, None before the first. Notes that the database does not
    take now are written later.
    """

    def __init__(self, every_s: float = 1.0) -> None:
        super().__init__(name="deployments", daemon=True)
        self.rows: Mapping[UUID, Wanted] | None = None
        self._every_s = every_s
        self._notes: queue.SimpleQueue[_Note] = queue.SimpleQueue()
        self._unwritten: list[_Note] = []
        self._ending = threading.Event()

    def note(self, write: _Note) -> None:
        self._notes.put(write)

    def close(self, timeout_s: float = 3.0) -> None:
        """Writes what is still to be written, if the database lets us in time."""
        self._ending.set()
        if self.is_alive():
            self.join(timeout_s)

    def run(self) -> None:
        while not self._ending.wait(self._every_s):
            self._turn()
        self._turn()

    def _turn(self) -> None:
        while not self._notes.empty():
            self._unwritten.append(self._notes.get())
        try:
            with session_scope() as session:
                for write in self._unwritten:
                    write(session)
                rows = repository.wanted(session)
        except (SQLAlchemyError, StepdownError, OSError):
            return
        self._unwritten = []
        self.rows = {row.id: row for row in rows}


class StudentEngine:
    """The engine of one deployment, as a service. Ready when its row says so: the engine has then answered a call."""

    stop_signal = signal.SIGTERM
    grace_s = 15.0
    engine = False

    def __init__(self, row: Wanted, watch: Watch, program: list[str]) -> None:
        self.name = f"student {row.student}"
        self.id = row.id
        self._watch = watch
        self._program = program

    @property
    def url(self) -> str | None:
        row = (self._watch.rows or {}).get(self.id)
        return row.base_url if row else None

    def prepare(self) -> Launch:
        self._watch.note(partial(repository.mark_starting, deployment_id=self.id))
        return Launch([*self._program, str(self.id), "--port", str(free_port())])

    def probe(self) -> bool:
        row = (self._watch.rows or {}).get(self.id)
        return row is not None and row.state == "ready"


class Deployments:
    """Starts and stops one child per wanted row."""

    def __init__(
        self,
        adopt: Callable[[StudentEngine, Policy], Child],
        watch: Watch | None = None,
        policy: Policy = _POLICY,
        program: list[str] | None = None,
    ) -> None:
        self.children: dict[UUID, Child] = {}
        self.watch = watch or Watch()
        self._adopt = adopt
        self._policy = policy
        self._program = program or python("-m", "distill.serving")
        self._seen: dict[UUID, Phase] = {}

    def tick(self) -> None:
        """Follows the rows: a new one gets a child, one that is gone loses it, and each change is written down."""
        if self.watch.ident is None:
            self.watch.start()
        rows = self.watch.rows
        if rows is None:
            return
        for row in rows.values():
            if row.id not in self.children:
                child = self._adopt(StudentEngine(row, self.watch, self._program), self._policy)
                self.children[row.id] = child
                child.start()
        for deployment_id, child in list(self.children.items()):
            child.tick()
            if deployment_id not in rows and child.phase is not Phase.STOPPING:
                child.stop()
            self._write(deployment_id, child)
            if child.settled and deployment_id not in rows:
                del self.children[deployment_id]
                self.watch.note(partial(repository.mark_stopped, deployment_id=deployment_id))
            elif child.phase is Phase.STOPPED:  # wanted again while it was still ending: begin anew
                del self.children[deployment_id]

    def _write(self, deployment_id: UUID, child: Child) -> None:
        if self._seen.get(deployment_id) == child.phase:
            return
        self._seen[deployment_id] = child.phase
        if child.phase is Phase.RESTARTING:
            self.watch.note(partial(repository.mark_down, deployment_id=deployment_id, error=child.detail))
        elif child.phase is Phase.FAILED:
            why = f"The engine died {self._policy.deaths} times in a row: {child.detail} See {child.log}."
            self.watch.note(partial(repository.mark_failed, deployment_id=deployment_id, error=why))

    def stop(self, grace_s: float | None) -> None:
        for child in self.children.values():
            child.stop(grace_s)

    def close(self) -> None:
        """After all engines have ended: their rows must not send anybody to them."""
        self.watch.note(repository.forget_engines)
        self.watch.close()
