"""Owns the doctor's look at the machine: Python, memory, limits, disk, what learning needs."""

from __future__ import annotations

import platform
import resource
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import psutil

from gateway.cli.doctor.finding import Finding, judged
from gateway.core.cpu import multiplies_bf16
from gateway.core.errors import StepdownError
from gateway.core.home import ensure_home
from gateway.core.settings import settings

FEWEST_FILES, ENOUGH_FILES = 1024, 8192
"""Open files of one process. A call under way needs two sockets, one to each side."""


def machine() -> Iterator[Finding]:
    """Whether this is a machine that Stepdown runs on."""
    version = platform.python_version()
    yield judged("python", sys.version_info[:2] == (3, 11), f"Python {version}", "3.11 is needed")
    yield judged("system", sys.platform == "linux", f"{platform.system()} {platform.machine()}", "Linux is needed")
    memory = psutil.virtual_memory().total / 1e9
    yield judged(
        "memory", memory >= 11, f"{memory:.0f} GB of memory", "12 are needed to train and serve on one machine"
    )
    if multiplies_bf16():
        yield Finding("cpu", "ok", "CPU with bf16 instructions")
    else:
        slow = "models compute in float32, training takes about three times as long"
        yield Finding("cpu", "note", "CPU without bf16 instructions", slow)


def open_files() -> Iterator[Finding]:
    """How many connections a process may have."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    what = f"limit of {limit} open files, for some {limit // 2} calls at once in each process"
    do = f"`ulimit -n {min(max(most, limit), 65536)}` before the start, or LimitNOFILE= in its systemd unit"
    if limit < FEWEST_FILES:
        yield Finding("open_files", "wrong", what, do)
    elif limit < ENOUGH_FILES:
        yield Finding("open_files", "note", what, f"for more, {do}")
    else:
        yield Finding("open_files", "ok", what)


def home() -> Iterator[Finding]:
    """Whether our data has a place."""
    folder = settings().root
    try:
        ensure_home(folder)
    except StepdownError as error:
        yield Finding("home", "wrong", error.message, error.hint or "")
        return
    free = shutil.disk_usage(folder).free / 1e9
    do = "3 are needed for a run: free some, or set STEPDOWN_HOME to a folder on another disk"
    yield judged("home", free >= 3, f"{folder}: writable, {free:.0f} GB free", do)


def learning() -> Iterator[Finding]:
    """Whether students can be trained and served."""
    for module, what in (("torch", "training"), ("vllm", "sampling and serving")):
        there = find_spec(module) is not None
        yield judged(module, there, f"{module} for {what}", "it is not installed, run `make setup` again")
    model = settings().base_model_dir
    there = (model / "model.safetensors").is_file()
    yield judged("base_model", there, f"base model in {model}", "it is missing, `python -m distill.artifacts` makes it")
