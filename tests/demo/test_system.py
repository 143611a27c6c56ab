"""Processes of the demo: started, watched, ended by pid, never left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from demo import system
from demo.system import Child, DemoError


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPDOWN_HOME", str(tmp_path))


def gone(pid: int, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_the_teacher_starts_on_a_free_port_and_ends_when_told() -> None:
    url, child = system.start_teacher(1, 1, "sk-t")
    answer = httpx.get(f"{url}/models", headers={"authorization": "Bearer sk-t"})
    assert answer.json()["data"][0]["id"] == "frontier-large"
    child.stop()
    assert child.process.returncode == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/models")


def test_the_teacher_does_not_outlive_a_killed_demo(tmp_path: Path) -> None:
    script = (
        "import os, sys; from demo import system; url, child = system.start_teacher(1, 1, 'k');"
        "print(child.process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert gone(int(done.stdout))


def test_a_child_that_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; print('no disk space', file=sys.stderr); sys.exit(3)"]
    child = Child("thing", command, tmp_path / "thing.log")
    child.process.wait(20)
    with pytest.raises(DemoError, match=r"(?s)thing ended with code 3.*no disk space"):
        child.check()
    child.stop()


def test_a_deaf_child_is_killed_with_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "STOP_S", 0.5)
    script = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "grandchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print(grandchild.pid, flush=True); time.sleep(600)"
    )
    child = Child("deaf", [sys.executable, "-c", script], tmp_path / "deaf.log", stdout=subprocess.PIPE)
    assert child.process.stdout
    grandchild = int(child.process.stdout.readline())
    child.stop()
    assert child.process.returncode == -signal.SIGKILL
    assert gone(grandchild)


def test_ctrl_c_does_not_reach_a_child(tmp_path: Path) -> None:
    child = Child("quiet", [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "quiet.log")
    assert os.getsid(child.process.pid) == child.process.pid != os.getsid(0)
    child.stop()


def test_stepdown_that_fails_at_start_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "stepdown"
    broken.write_text("#!/bin/sh\necho 'port 8787 is taken by nginx' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("STEPDOWN_PORT", "1")
    with pytest.raises(DemoError, match="port 8787 is taken by nginx"):
        system.start_stepdown(lambda _: None)
