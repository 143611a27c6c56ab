"""Owns `stepdown up`, `status`, `down` and `serve`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gateway.core.errors import StepdownError
from gateway.core.home import ensure_home
from gateway.core.logs import last_line
from gateway.core.settings import read_or_create_secret, settings
from gateway.supervisor.instance import Lock, end_orphans, read_state, refuse_second
from gateway.supervisor.service import address, python
from gateway.supervisor.view import table

Port = Annotated[int | None, typer.Option(help="Port of the gateway, the API and the dashboard.")]
_DETACHED_START_S = 120.0
_STOP_S = 120.0
_ANSWER_S = 3.0


def up(
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once everything runs.")] = False,
    port: Port = None,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Gateway processes, all on the one port.")] = None,
) -> None:
    """Start everything, and keep it running until Ctrl-C (or `stepdown down`)."""
    _choose("STEPDOWN_PORT", port)
    _choose("STEPDOWN_WORKERS", workers)
    home = settings().root
    os.environ["STEPDOWN_HOME"] = str(home)
    if detach:
        refuse_second(home)
        ensure_home(home)
        pid = _detached(home)
        typer.echo(_first_line(home))
        typer.echo(f"Everything runs (pid {pid}). `stepdown status` shows it, `stepdown down` stops it.")
        return
    from gateway.supervisor.run import claimed, supervise

    with claimed(home):
        typer.echo(_first_line(home))
        code = supervise(home)
    raise typer.Exit(code)


def _choose(variable: str, value: int | None) -> None:
    if value is not None:
        os.environ[variable] = str(value)
        settings.cache_clear()


def _first_line(home: Path) -> str:
    token = read_or_create_secret(home / "secrets" / "admin.token")
    url = address(settings().host, settings().port)
    return f"Stepdown: {url}  admin token: {token}  (dashboard and API; apps use {url}/v1)"


def _detached(home: Path) -> int:
    """Starts the same command in a session of its own and waits until everything runs."""
    log = home / "logs" / "supervisor.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        began = output.tell()
        process = subprocess.Popen(
            python("-m", "gateway.supervisor"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + _DETACHED_START_S
    while time.monotonic() < deadline:
        state = read_state(home)
        if process.poll() is not None:
            why = state.error if state and state.supervisor.pid == process.pid and state.error else ""
            raise StepdownError(503, "did_not_start", why or last_line(log, began), hint=f"Log: {log}")
        if state is not None and state.supervisor.pid == process.pid and state.phase == "up":
            return process.pid
        time.sleep(0.1)
    raise StepdownError(
        503,
        "slow_start",
        f"Not everything has come up after {_DETACHED_START_S:.0f} s; it goes on trying.",
        hint="See `stepdown status`.",
    )


def status() -> None:
    """Show what runs. Exit status 0 when all is well, 1 when something is not, 3 when nothing runs."""
    state = read_state(settings().root)
    if state is None or not state.running:
        killed = state is not None and state.phase != "stopped"
        left = " The last run was killed; `stepdown up` or `stepdown down` ends what it left behind." if killed else ""
        typer.echo(f"Stepdown does not run in {settings().root}.{left}")
        raise typer.Exit(3)
    Console().print(table([row for row in state.children if row["state"] != "done"], state.address))
    typer.echo(f"supervisor pid {state.supervisor.pid}, {state.phase}")
    problems = _problems(state.address)
    for problem in problems:
        typer.echo(problem)
    up = state.phase == "up" and all(r["state"] in ("ready", "done") for r in state.children)
    raise typer.Exit(0 if up and not problems else 1)


def _problems(address: str) -> list[str]:
    """What the running gateway says is wrong with it."""
    import httpx  # not needed by the other commands, and slow to load

    try:
        found: list[str] = httpx.get(f"{address}/readyz", timeout=_ANSWER_S, trust_env=False).json()["problems"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        return [f"The gateway does not say how it is ({type(error).__name__} at {address}/readyz)."]
    return found


def down() -> None:
    """Stop everything that `stepdown up` started."""
    home = settings().root
    state = read_state(home)
    if state is None or not state.running:
        ended = []
        if state is not None:
            lock = Lock(home)
            try:
                ended = end_orphans(home)
            finally:
                lock.release()
        left = f" What a killed run had left behind was ended: {', '.join(ended)}." if ended else ""
        typer.echo(f"Stepdown does not run in {home}.{left}")
        return
    os.kill(state.supervisor.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while state.running:
        if time.monotonic() > deadline:
            raise StepdownError(
                503,
                "slow_stop",
                f"The supervisor (pid {state.supervisor.pid}) has not stopped after {_STOP_S:.0f} s.",
                hint=f"See {home}/logs. The hard way: `kill -9 {state.supervisor.pid}`, then `stepdown down`.",
            )
        time.sleep(0.05)
    typer.echo("Everything has stopped.")


def serve(port: Port = None) -> None:
    """Run the gateway alone, against DATABASE_URL and REDIS_URL (or the embedded engines while they run)."""
    _choose("STEPDOWN_PORT", port)
    from gateway import app

    app.serve(settings().host, settings().port)
