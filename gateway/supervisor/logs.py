"""Owns the log files of what the supervisor runs. Must not interpret them beyond their last line."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

_CAP = 10_000_000
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")


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


def last_line(path: Path, since: int = 0) -> str:
    """The last line with text, written after byte `since`; empty when there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(since, size - 4096)
            if start >= size:
                return ""
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    texts = [_CONTROL.sub("", line).strip() for line in lines]
    return next((text for text in reversed(texts) if text), "")[:300]
