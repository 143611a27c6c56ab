"""Owns starting, recognising and ending operating-system processes. Must not know what a process is for.

A process is recognised by pid *and* start (boot id and kernel tick), so that a pid which the kernel has
given to somebody else is never taken for ours.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Launch:
    """How to start one process: argument list, extra environment, and the user to become (None: stay)."""

    argv: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None

    def account(self) -> dict[str, Any]:
        """Arguments for `subprocess` that make the process become `user`, with none of our groups left."""
        if self.user is None:
            return {}
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}


@dataclass(frozen=True)
class Identity:
    """A process that no other process can be mistaken for, before or after a reboot."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Whether exactly this process still runs (a zombie does not)."""
        return identify(self.pid) == self


def identify(pid: int) -> Identity | None:
    """The identity of a running process, None when there is none with this pid."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the name in parentheses, and may itself hold spaces and parentheses.
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Identity(pid, f"{boot}/{rest[18]}")


def become_subreaper() -> None:
    """Makes orphaned descendants our children instead of init's, so that none can escape a clean stop."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawn(launch: Launch, log: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own, with its output appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            launch.argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**(os.environ if env is None else env), **launch.env},
            start_new_session=True,
            **launch.account(),
        )


def working_in(folder: Path) -> list[psutil.Process]:
    """Processes whose working directory is exactly `folder`: both engines move into their data folder."""
    wanted = str(folder.resolve())
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.cwd() == wanted and process.pid != os.getpid():
                found.append(process)
    return found


def marked(variable: str, value: str) -> list[psutil.Process]:
    """Processes that carry `variable=value` in the environment they were started with."""
    needle = f"\0{variable}={value}\0".encode()
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if needle in b"\0" + Path(f"/proc/{process.pid}/environ").read_bytes() and process.pid != os.getpid():
                found.append(process)
    return found


def family(pid: int) -> list[psutil.Process]:
    """The process, its descendants, and every member of its group or session."""
    found: dict[int, psutil.Process] = {}
    with suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        found = {p.pid: p for p in [leader, *leader.children(recursive=True)]}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == pid or os.getpgid(process.pid) == pid:
                found.setdefault(process.pid, process)
    return list(found.values())


def end(processes: Iterable[psutil.Process], grace_s: float, first: signal.Signals = signal.SIGTERM) -> None:
    """Ends processes: `first` to each, SIGKILL to those still there after `grace_s`; returns when all are gone."""
    left = list(processes)
    if grace_s > 0:
        _send(left, first)
        left = _wait(left, grace_s)
    _send(left, signal.SIGKILL)
    _wait(left, 5.0)


def _send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # psutil compares start times first: never a stranger's pid
            process.send_signal(number)


def _wait(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run when `seconds` have passed."""
    deadline = time.monotonic() + seconds
    left = [p for p in processes if _runs(p)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [p for p in left if _runs(p)]
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def reap_adopted(known: set[int]) -> None:
    """Reaps zombies that became our children by adoption; `known` are those whose owner waits for them itself."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.pid not in known and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)
