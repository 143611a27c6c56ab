"""How the bench and its two workers speak: a line of JSON asks, a line of JSON answers. Imports nothing but Python.

Peak memory is the kernel's own high-water mark of the process, put back to what is held before each piece of work.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def serve(load: Callable[[dict[str, Any]], dict[str, Callable[..., dict[str, Any]]]]) -> None:
    """Answer on the real standard output what is asked on standard input; everything else printed goes to stderr."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    calls = load(json.loads(sys.stdin.readline()))
    out.write(json.dumps({"loaded_mb": memory_mb("VmRSS")}) + "\n")
    for line in sys.stdin:
        asked = json.loads(line)
        Path("/proc/self/clear_refs").write_text("5")
        try:
            answer = calls[asked.pop("do")](**asked)
            answer["peak_mb"] = memory_mb("VmHWM")
        except Exception:
            answer = {"error": traceback.format_exc()}
        out.write(json.dumps(answer) + "\n")


def memory_mb(name: str) -> float:
    """A line of /proc/self/status in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"/proc/self/status has no {name}")
