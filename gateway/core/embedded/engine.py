"""Owns what the embedded engines have in common: prepare a folder, start, wait until it answers, stop.

Must not restart anything: the supervisor does.
"""

from __future__ import annotations

import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from gateway.core.errors import StepdownError
from gateway.core.processes import Launch, end, family, spawn, working_in


class Engine(ABC):
    """One server process with its data in a folder of STEPDOWN_HOME, listening on loopback only."""

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    grace_s: ClassVar[float] = 30.0

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / self.name
        self.port = 0

    @abstractmethod
    def prepare(self) -> Launch:
        """Makes the folder ready, ends what a killed run left, picks a port. Raises StepdownError with what to do."""

    @abstractmethod
    def probe(self) -> bool:
        """Whether the server answers with our password now."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it listens, password included."""

    def end_leftovers(self) -> None:
        """Ends servers that still work in the data folder: they would block a new one, or write beside it."""
        left = working_in(self.data)
        end(left, grace_s=10.0, first=self.stop_signal)


@contextmanager
def running(engine: Engine, log: Path, timeout_s: float = 60.0) -> Iterator[subprocess.Popen[bytes]]:
    """The engine, answering, for the length of the block. For tests and one-off commands."""
    process = spawn(engine.prepare(), log)
    try:
        deadline = time.monotonic() + timeout_s
        while not engine.probe():
            if process.poll() is not None or time.monotonic() > deadline:
                raise StepdownError(503, f"{engine.name}_did_not_start", f"{engine.name} did not start: see {log}.")
            time.sleep(0.02)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(engine.stop_signal)
            try:
                process.wait(engine.grace_s)
            except subprocess.TimeoutExpired:
                end(family(process.pid), grace_s=0)
        process.wait()
        engine.end_leftovers()
