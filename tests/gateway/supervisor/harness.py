"""Runs a real supervisor over cheap commands, as its own process: `python harness.py HOME SPEC.json`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from gateway.core.errors import StepdownError
from gateway.core.processes import Identity, marked
from gateway.supervisor.instance import MARK, Lock, State, end_orphans, read_state
from gateway.supervisor.service import Command, Policy
from gateway.supervisor.supervisor import Supervisor
from gateway.supervisor.view import View


def serve(home: Path, spec: list[list[dict[str, Any]]]) -> int:
    stages = [
        [
            (
                Command(
                    name=each["name"], argv=each["argv"], grace_s=each.get("grace_s", 5.0), nice=each.get("nice", 0)
                ),
                Policy(**each["policy"]),
            )
            for each in stage
        ]
        for stage in spec
    ]
    try:
        lock = Lock(home)
    except StepdownError as error:
        print(error, flush=True)
        return 1
    try:
        print("ended:", *end_orphans(home), flush=True)
        view = View(Console(force_terminal=False), "http://127.0.0.1:1")
        return Supervisor(stages, home, view, {}).run()
    finally:
        lock.release()


def eventually(check: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


class Running:
    """A supervisor under test. Use as a context manager: whatever happens, nothing is left behind."""

    def __init__(self, home: Path, *stages: list[dict[str, Any]]) -> None:
        self.home = home
        spec = home / "spec.json"
        spec.write_text(json.dumps([[{"policy": {}, **each} for each in stage] for stage in stages]))
        self.argv = [sys.executable, __file__, str(home), str(spec)]
        self.tokens: set[str] = set()

    def __enter__(self) -> Running:
        self.output = (self.home / "output").open("ab")
        self.process = subprocess.Popen(self.argv, stdout=self.output, stderr=subprocess.STDOUT)
        eventually(lambda: self.process.poll() is not None or self.state.supervisor.pid == self.process.pid)
        self.tokens.add(self.state.token)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.output.close()
        for process in self.alive():
            process.kill()

    @property
    def state(self) -> State:
        return read_state(self.home) or State(Identity(0, ""), "", "")

    def child(self, name: str) -> dict[str, Any]:
        return next((c for c in self.state.children if c["name"] == name), {"state": None, "pid": None, "restarts": 0})

    def alive(self) -> list[psutil.Process]:
        return [process for token in self.tokens for process in marked(MARK, token)]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def said(self) -> str:
        return (self.home / "output").read_text()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(serve(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())))
