"""Owns the life of one service's process: start, readiness, restarts with back-off, stop with all its descendants.

Must not decide when the system as a whole starts or stops, and never blocks for longer than a kill takes.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import psutil

from gateway.core.errors import StepdownError
from gateway.core.logs import last_line
from gateway.core.processes import Identity, end, family, identify, spawn
from gateway.supervisor.logs import contains, rotate
from gateway.supervisor.service import Policy, Service


class Phase(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    DONE = "done"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class Child:
    """One service with its current process, if any. `tick` is to be called a few times a second."""

    def __init__(self, service: Service, policy: Policy, logs: Path, env: Mapping[str, str]) -> None:
        self.service = service
        self.policy = policy
        self.log = logs / f"{service.name.replace(' ', '-').replace('/', '-')}.log"
        self.env = env
        self.phase = Phase.WAITING
        self.came_up = False  # was ready, or done, at least once
        self.starts = 0
        self.detail = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.identity: Identity | None = None
        self.started_at = 0.0
        self._clock = 0.0
        self._log_start = 0
        self._deaths = 0
        self._due = 0.0
        self._kin: list[psutil.Process] = []
        self._again = False

    @property
    def settled(self) -> bool:
        return self.phase in (Phase.WAITING, Phase.STOPPED, Phase.DONE, Phase.FAILED)

    def start(self) -> None:
        """Starts the process; a failure to do so counts as a death."""
        self.starts += 1
        self._clock, self.started_at = time.monotonic(), time.time()
        self._again = False
        try:
            launch = self.service.prepare()
            rotate(self.log)
            self._log_start = self.log.stat().st_size if self.log.exists() else 0
            self.process = spawn(launch, self.log, self.env)
        except StepdownError as error:
            self._refused(str(error))
            return
        except OSError as error:
            self._died(str(error))
            return
        self.identity = identify(self.process.pid)
        self.phase = Phase.STARTING

    def tick(self) -> None:
        """Looks at the process and moves on."""
        if self.phase in (Phase.STARTING, Phase.READY):
            self._watch()
        elif self.phase is Phase.RESTARTING and time.monotonic() >= self._due:
            self.start()
        elif self.phase is Phase.STOPPING:
            self._await_end()

    def stop(self, grace_s: float | None = None, *, again: bool = False) -> None:
        """Asks the process to end; `tick` kills it and its descendants when `grace_s` has passed.

        With `again` it is started afresh afterwards.
        """
        self._again = again
        if self.process is None or self.process.poll() is not None:
            if not self.settled or self.phase is Phase.WAITING:
                self.phase = Phase.WAITING if again else Phase.STOPPED
            return
        self._due = time.monotonic() + (self.service.grace_s if grace_s is None else grace_s)
        if self.phase is not Phase.STOPPING:
            # Noted now: once the process is gone, descendants in sessions of their own cannot be traced to it.
            self._kin = family(self.process.pid)
            self.phase = Phase.STOPPING
            with suppress(ProcessLookupError):
                self.process.send_signal(self.service.stop_signal)

    def _watch(self) -> None:
        assert self.process is not None
        if rotate(self.log):
            self._log_start = 0
        code = self.process.poll()
        if code is not None:
            end(family(self.process.pid), grace_s=0)
            if code == 0 and self.policy.once:
                self.phase, self.came_up, self.identity = Phase.DONE, True, None
            else:
                self._died(f"{_ended_how(code)} {last_line(self.log, self._log_start)}".strip())
        elif self.phase is Phase.STARTING and not self.policy.once:
            try:
                text = self.policy.ready_text
                ready = self.service.probe() and (not text or contains(self.log, text, self._log_start))
            except StepdownError as error:
                self._refused(str(error))
                return
            if ready:
                self.phase, self.came_up, self.detail = Phase.READY, True, ""

    def _refused(self, why: str) -> None:
        """A refusal that can say why will not go away by trying again soon."""
        if self.process is not None:
            end(family(self.process.pid), grace_s=0)
            self.process.wait()
        self._deaths = self.policy.deaths
        self._died(why)

    def _died(self, how: str) -> None:
        quick = time.monotonic() - self._clock < self.policy.quick_s
        self._deaths = self._deaths + 1 if quick else 1
        self.detail, self.identity, self.process = how, None, None
        hopeless = self.policy.give_up == "always" or (self.policy.give_up == "before_ready" and not self.came_up)
        if hopeless and self._deaths >= self.policy.deaths:
            self.phase = Phase.FAILED
        else:
            self._due = time.monotonic() + self.policy.delay_s(self._deaths)
            self.phase = Phase.RESTARTING

    def _await_end(self) -> None:
        assert self.process is not None
        gone = self.process.poll() is not None
        if not gone and time.monotonic() < self._due:
            return
        left = {p.pid: p for p in [*self._kin, *family(self.process.pid)]}
        end(left.values(), grace_s=2.0 if gone else 0.0)
        self.process.wait()
        self._kin, self.process, self.identity, self.detail = [], None, None, ""
        self.phase = Phase.WAITING if self._again else Phase.STOPPED


def _ended_how(code: int) -> str:
    if code >= 0:
        return f"exit {code}:"
    try:
        return f"{signal.Signals(-code).name}:"
    except ValueError:
        return f"signal {-code}:"
