"""Owns the list of what `stepdown up` runs, in the order of starting. Must not run it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

from gateway.capture import status
from gateway.core import workers
from gateway.core.embedded import Engine, Postgres, Valkey
from gateway.core.endpoints import publish
from gateway.core.processes import Launch
from gateway.core.settings import Settings
from gateway.supervisor.service import Command, HttpCommand, Policy, Stage, address, python

_ESSENTIAL = Policy(give_up="before_ready", quick_s=60.0)
_ONCE = Policy(once=True, give_up="always", quick_s=math.inf, deaths=3, first_delay_s=1.0)


class EmbeddedEngine:
    """An embedded engine as a service: tells the other processes where it listens once it answers."""

    engine = True

    def __init__(self, engine: Engine, published_as: str) -> None:
        self._server = engine
        self.name = engine.name
        self.stop_signal = engine.stop_signal
        self.grace_s = engine.grace_s
        self._published_as = published_as

    @property
    def url(self) -> str | None:
        return f"127.0.0.1:{self._server.port}" if self._server.port else None

    def prepare(self) -> Launch:
        return self._server.prepare()

    def probe(self) -> bool:
        if not self._server.probe():
            return False
        publish(self._published_as, self._server.url)
        return True


@dataclass
class Writer(Command):
    """The writer is ready once it has left its note: what it logs depends on how much the user wants to read."""

    spool_dir: Path = Path()

    def probe(self) -> bool:
        return status.read(self.spool_dir) is not None


@dataclass
class GatewayWorker(Command):
    """One of several gateways on the one port: which of them a request reaches is chance, so each leaves a note."""

    number: int = 1
    run_dir: Path = Path()
    shown_as: str = ""
    _started: float = 0.0

    @property
    def url(self) -> str | None:
        return self.shown_as

    def prepare(self) -> Launch:
        self._started = time.time()
        return super().prepare()

    def probe(self) -> bool:
        note = workers.read(workers.note_path(self.run_dir, self.number))
        return note is not None and note.ready and note.at > self._started


def _gateways(settings: Settings) -> Stage:
    """The gateway, or as many as were asked for."""
    program, grace_s = python("-m", "gateway.app"), settings.grace_s + 5.0
    if settings.workers == 1:
        alone = HttpCommand("gateway", program, grace_s=grace_s, host=settings.host, port=settings.port, path="/readyz")
        return [(alone, _ESSENTIAL)]
    for old in settings.run_dir.glob("gateway-*.note"):
        old.unlink()  # of an earlier run: counting begins anew
    return [
        (
            GatewayWorker(
                f"gateway {number}",
                program,
                {workers.VARIABLE: str(number), "STEPDOWN_WORKERS": str(settings.workers)},
                grace_s=grace_s,
                number=number,
                run_dir=settings.run_dir,
                shown_as=address(settings.host, settings.port),
            ),
            _ESSENTIAL,
        )
        for number in range(1, settings.workers + 1)
    ]


def stages(settings: Settings, home: Path) -> list[Stage]:
    """Services by stage: a stage starts when everything in the one before has come up; they stop in reverse."""
    engines: Stage = []
    if settings.database_url is None:
        engines.append((EmbeddedEngine(Postgres(home), "database"), _ESSENTIAL))
    if settings.redis_url is None:
        engines.append((EmbeddedEngine(Valkey(home), "redis"), _ESSENTIAL))
    celery = python("-m", "celery", "-A", "distill.app")
    schedule = home / "beat" / "schedule"
    schedule.parent.mkdir(exist_ok=True)
    return [
        engines,
        [(Command("bootstrap", python("-m", "gateway.supervisor.bootstrap")), _ONCE)],
        [
            # Stopped after the gateway, so that it still stores what the gateway's last calls left.
            (
                Writer(
                    "writer",
                    python("-m", "gateway.capture.writer"),
                    nice=15,  # storing takes what calls leave, and of that less than training
                    spool_dir=settings.spool_dir,
                ),
                Policy(),
            ),
        ],
        [
            *_gateways(settings),
            (
                Command(
                    "worker",
                    [*celery, "worker", "--queues=default,judge,train", "--concurrency=2", "--loglevel=INFO"],
                    grace_s=15.0,
                    nice=10,  # training takes what calls leave
                ),
                Policy(ready_text=" ready."),
            ),
            (
                Command("beat", [*celery, "beat", f"--schedule={schedule}", "--pidfile="]),
                Policy(ready_text="is starting."),
            ),
        ],
    ]
