"""The processes of the demo: `stepdown up` and the scripted teacher, started and ended by pid.

Owns their lives and no others'. What ran before the demo runs after it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from demo.api import Api, ApiError, admin_token

HERE = "127.0.0.1"
START_S = 300.0
STOP_S = 90.0


class DemoError(Exception):
    """What went wrong and what to do, in a line or two for the person who watches."""


class Child:
    """One process in a session of its own, so that Ctrl-C reaches the demo alone and the demo ends things in order."""

    def __init__(self, name: str, command: list[str], log: Path, **options: Any) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        log.touch(mode=0o600)
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=errors, start_new_session=True, **({"stdout": errors} | options)
            )

    def check(self) -> None:
        """Raises DemoError with the last lines of the log when the process has ended."""
        if (code := self.process.poll()) is not None:
            raise DemoError(f"{self.name} ended with code {code}. The end of {self.log}:\n{tail(self.log)}")

    def stop(self) -> None:
        """Asks once, waits, and kills only the process and its session if it does not end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        if self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()


def tail(log: Path, lines: int = 8) -> str:
    """The last lines of a log, each shortened. The line with the admin token is not for showing."""
    text = log.read_text(errors="replace") if log.exists() else ""
    shown = [line for line in text.splitlines() if "token:" not in line]
    return "\n".join(f"  {line[:200]}" for line in shown[-lines:]) or "  (empty)"


def home() -> Path:
    return Path(os.environ.get("STEPDOWN_HOME", ".stepdown")).expanduser().resolve()


def address() -> str:
    return f"http://{os.environ.get('STEPDOWN_HOST', HERE)}:{os.environ.get('STEPDOWN_PORT', '8787')}"


def running() -> Api | None:
    """The Stepdown of this home if it runs and is ready; None otherwise."""
    token = admin_token(home())
    if token is None:
        return None
    api = Api(address(), token)
    try:
        if api.ready():
            api.me()
            return api
    except ApiError as error:
        api.close()
        raise DemoError(
            f"{address()} answers, but not as the Stepdown of {home()}: {error}\n"
            "Stop what listens there, or set STEPDOWN_PORT to another port."
        ) from error
    api.close()
    return None


def start_stepdown(tell: Callable[[str], None]) -> tuple[Api, Child]:
    """`stepdown up` as a child, ready to answer calls. Raises DemoError when it ends or takes too long."""
    command = [str(Path(sys.executable).with_name("stepdown")), "up"]
    log = home() / "logs" / "demo-stepdown-up.log"
    log.unlink(missing_ok=True)
    child = Child("stepdown up", command, log)
    deadline = time.monotonic() + START_S
    try:
        while time.monotonic() < deadline:
            child.check()
            if api := running():
                return api, child
            tell(tail(log, 1).strip()[:70])
            time.sleep(0.3)
        raise DemoError(f"stepdown up is not ready after {START_S:.0f} s. The end of {log}:\n{tail(log)}")
    except BaseException:
        child.stop()
        raise


def start_teacher(delay_ms: float, judge_delay_ms: float, key: str) -> tuple[str, Child]:
    """The scripted teacher on a free port, and its base URL."""
    command = [
        *(sys.executable, "-m", "demo.teacher", "--port", "0", "--with-parent"),
        *("--delay-ms", str(delay_ms), "--judge-delay-ms", str(judge_delay_ms)),
    ]
    environment = {**os.environ, "DEMO_TEACHER_KEY": key}
    child = Child(
        "scripted teacher", command, home() / "logs" / "demo-teacher.log", stdout=subprocess.PIPE, env=environment
    )
    assert child.process.stdout
    line = child.process.stdout.readline()
    if not line:
        child.process.wait(10)
        child.check()
    return str(json.loads(line)["base_url"]), child
