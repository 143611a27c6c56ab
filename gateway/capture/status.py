"""Owns the note that the writer leaves for status pages: what waits, what was put aside, why it stands still."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

_EVERY_S = 1.0
STALE_S = 10.0


class Note(msgspec.Struct):
    """The writer's state at `at` (Unix seconds). `failure`: why nothing can be stored now."""

    at: float
    waiting_bytes: int
    stored: int
    rejected: int
    failure: str | None


class WriterStatus:
    """Counts what the writer did since it started, and writes the note about once a second."""

    def __init__(self, folder: Path) -> None:
        self.stored = 0
        self.rejected = 0
        self._path = folder / "writer.json"
        self._written = 0.0
        self._failure: str | None = None

    def write(self, waiting_bytes: int, failure: str | None) -> None:
        """Replaces the note, unless it is fresh and says the same about failure."""
        if time.monotonic() - self._written < _EVERY_S and failure == self._failure:
            return
        note = Note(time.time(), waiting_bytes, self.stored, self.rejected, failure)
        temporary = self._path.with_suffix(f".{os.getpid()}")
        try:
            temporary.write_bytes(msgspec.json.encode(note))
            temporary.replace(self._path)
        except OSError:
            return  # a full disk: the note is the least of it
        self._written, self._failure = time.monotonic(), failure


def read(folder: Path) -> Note | None:
    """The writer's note; None when none was written or it is too old to mean anything."""
    try:
        note = msgspec.json.decode((folder / "writer.json").read_bytes(), type=Note)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    return note if time.time() - note.at < STALE_S else None
