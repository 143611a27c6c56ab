"""Owns the loop: starts stages in order, keeps them running, stops them in reverse. Must not know what they are."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import psutil

from gateway.core.processes import become_subreaper, end, reap_adopted
from gateway.supervisor.child import Child, Phase
from gateway.supervisor.instance import MARK, State, own_identity, write_state
from gateway.supervisor.service import Policy, Service, Stage
from gateway.supervisor.view import View

if TYPE_CHECKING:
    from gateway.supervisor.deployments import Deployments

_TICK_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """Everything that runs under one parent process. `run` returns when all of it has ended."""

    def __init__(
        self,
        stages: Iterable[Stage],
        home: Path,
        view: View,
        env: Mapping[str, str],
        make_deployments: Callable[[Callable[[Service, Policy], Child]], Deployments] | None = None,
    ) -> None:
        self.home = home
        self.view = view
        self.state = State(own_identity(), uuid.uuid4().hex, view.address)
        self._env = {**os.environ, **env, MARK: self.state.token}
        self.stages = [[self._adopt(service, policy) for service, policy in stage] for stage in stages]
        self.deployments = make_deployments(self._adopt) if make_deployments else None
        self._wake = threading.Event()
        self._asked = 0
        self._urls: dict[str, str] = {}
        self._written: object = None
        self._shown_at = 0.0
        self._began = time.monotonic()

    def run(self) -> int:
        """Starts everything and keeps it running until a signal or a service that cannot start. 0, or 1 on failure."""
        become_subreaper()
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            with self.view:
                try:
                    while not self._asked and not self.state.error:
                        self._tick()
                        self._wake.wait(_TICK_S)
                finally:
                    self._stop_all()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return 1 if self.state.error else 0

    def _adopt(self, service: Service, policy: Policy) -> Child:
        return Child(service, policy, self.home / "logs", self._env)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._asked += 1
        self._wake.set()

    def _tick(self) -> None:
        for position, stage in enumerate(self.stages):
            for child in stage:
                if child.phase is Phase.WAITING:
                    child.start()
                child.tick()
                self._follow_url(position, child)
                if child.phase is Phase.FAILED:
                    self.state.error = f"{child.service.name} does not start: {child.detail} (log: {child.log})"
            if not all(child.came_up for child in stage):
                break
        else:
            if self.deployments:
                self.deployments.tick()
            if self.state.phase == "starting":
                self.state.phase = "up"
                self._report()
                self.view.say(f"Everything runs, after {time.monotonic() - self._began:.1f} s. Ctrl-C stops it all.")
        self._report()

    def _follow_url(self, position: int, child: Child) -> None:
        """An engine that came back on another port takes those that still use the old one with it."""
        if child.phase is not Phase.READY or not child.service.engine:
            return
        url = child.service.url or ""
        if self._urls.setdefault(child.service.name, url) != url:
            self._urls[child.service.name] = url
            for later in [each for stage in self.stages[position + 1 :] for each in stage]:
                if later.phase is not Phase.DONE:
                    later.stop(again=True)

    def _stop_all(self) -> None:
        self.state.phase = "stopping"
        self.view.say("Stopping everything." if self._asked else f"Stopping everything: {self.state.error}")
        if self.deployments:
            self._stop(lambda: list(self.deployments.children.values()) if self.deployments else [])
            self.deployments.close()
        for stage in reversed(self.stages):
            self._stop(lambda stage=stage: stage)  # type: ignore[misc]  # mypy infers no lambda with a default
        # Whoever left its parent's session was adopted by us, and nobody else can end it.
        end(psutil.Process().children(recursive=True), grace_s=5)
        self.state.phase = "stopped"
        self._report()

    def _stop(self, children: Callable[[], list[Child]]) -> None:
        """Asks each to stop and waits until all have. A second signal shortens the wait."""
        asked = self._asked
        for child in reversed(children()):
            child.stop()
        while not all(child.settled for child in children()):
            if self._asked > asked:
                asked = self._asked
                for child in children():
                    if not child.service.engine:
                        child.stop(grace_s=0)
            for child in children():
                child.tick()
            self._report()
            self._wake.clear()
            self._wake.wait(_TICK_S)

    def _report(self) -> None:
        """Shows and writes down what changed; once a second shows it anyhow, because time passes."""
        children = [child for stage in self.stages for child in stage]
        students = list(self.deployments.children.values()) if self.deployments else []
        rows = [_row(child) for child in [*children, *students]]
        now = (self.state.phase, self.state.error, repr(rows))
        if now == self._written and time.monotonic() - self._shown_at < 1.0:
            return
        self._shown_at = time.monotonic()
        reap_adopted({c.process.pid for c in [*children, *students] if c.process})
        shown = [row for row in rows if row["state"] != Phase.DONE]
        if self.deployments and not students:
            shown.append({**_NO_STUDENT})
        self.view.show(shown)
        if now != self._written:
            self._written = now
            self.state.children = rows
            try:
                write_state(self.home, self.state)
            except OSError as error:  # a full disk must not end what still runs
                self.view.say(f"state.json could not be written: {error.strerror}")


_NO_STUDENT = {
    "name": "students",
    "state": "",
    "pid": None,
    "since": 0.0,
    "restarts": 0,
    "detail": "no engine running",
    "url": None,
}


def _row(child: Child) -> dict[str, Any]:
    return {
        "name": child.service.name,
        "state": str(child.phase),
        "pid": child.identity.pid if child.identity else None,
        "started": child.identity.started if child.identity else None,
        "since": child.started_at,
        "restarts": max(0, child.starts - 1),
        "url": child.service.url,
        "detail": child.detail,
        "engine": child.service.engine,
        "stop_signal": int(child.service.stop_signal),
    }
