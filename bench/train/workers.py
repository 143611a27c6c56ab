"""Owns the bench's two processes: how each is started and asked. Knows nothing of what they do.

Threads are those of a run's trainer, on both sides; OMP_NUM_THREADS and its like in the environment win.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from types import TracebackType
from typing import Any, Self

from bench.gateway.peers import ROOT
from distill.trainers import THREADS

HERE = ROOT / "bench" / "train"


class Worker:
    """One side, loaded and waiting. Ends with the `with` block."""

    def __init__(self, name: str, command: list[str], setup: dict[str, Any], env: dict[str, str]) -> None:
        self.name = name
        quiet = {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
        threads = {"OMP_NUM_THREADS": str(os.cpu_count())} | THREADS
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # it lives as long as the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=ROOT,
            env=threads | quiet | os.environ | env,
        )
        self.loaded_mb: float = self._said(setup)["loaded_mb"]

    def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """Have one piece of work done; raises RuntimeError with the worker's own words."""
        return self._said({"do": do, **what})

    def _said(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": self._end_of_log()}
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def _end_of_log(self) -> str:
        self._log.seek(0)
        return self._log.read()[-3000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def ours(setup: dict[str, Any]) -> Worker:
    """Our trainer in our environment."""
    return Worker("ours", [str(ROOT / ".venv/bin/python"), "-m", "bench.train.ours"], setup, {"PYTHONPATH": str(ROOT)})


def theirs(setup: dict[str, Any]) -> Worker:
    """TRL in its own."""
    return Worker("trl", [str(ROOT / ".bench/trl/bin/python"), str(HERE / "theirs.py")], setup, {"PYTHONPATH": ""})
