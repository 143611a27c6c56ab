"""Owns the log files of what the supervisor runs. Must not interpret them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_CAP = 10_000_000


def rotate(path: Path, cap: int = _CAP) -> bool:
    """Moves the text of a log larger than `cap` bytes to `<name>.1`, over the one before; whether it did.

    The file itself stays, emptied: a running process goes on appending to it.
    """
    if not path.exists() or path.stat().st_size <= cap:
        return False
    shutil.copyfile(path, path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)
    return True


def contains(path: Path, text: str, since: int) -> bool:
    """Whether `text` was written after byte `since`."""
    with path.open("rb") as file:
        file.seek(since)
        return text.encode() in file.read()
