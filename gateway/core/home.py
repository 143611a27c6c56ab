"""Owns the checks that STEPDOWN_HOME can hold our data. Must not write anything that stays."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from gateway.core.errors import StepdownError

MIN_FREE_MB = 500


def ensure_home(home: Path) -> None:
    """Makes the folder (mode 0700). Raises StepdownError when it cannot be written or the disk is full."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise StepdownError(
            503,
            "home_unwritable",
            f"{home} cannot be written ({error.strerror}).",
            hint="Give yourself the right to write there, or set STEPDOWN_HOME to another folder.",
        ) from error
    free = shutil.disk_usage(home).free // 1_000_000
    if free < MIN_FREE_MB:
        raise StepdownError(
            503,
            "disk_full",
            f"The disk of {home} has {free} MB free; {MIN_FREE_MB} MB are needed to start safely.",
            hint="Free some space, or set STEPDOWN_HOME to a folder on another disk.",
        )
