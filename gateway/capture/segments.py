"""Owns reading spool segments: which there are, what is new in one, whether its owner still lives.

Must not write to a segment; deletes it when told that every record in it is stored.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from gateway.capture.record import HEADER_BYTES, Framed, decode, frame_bytes
from gateway.capture.spool import SUFFIX

WINDOW = 8 * 1024 * 1024


@dataclass(frozen=True)
class Piece:
    """Frames read from `start` on. `closed`: nothing will follow what the file holds; `left`: bytes after `end`."""

    start: int
    end: int
    frames: list[Framed]
    closed: bool
    left: int


class Segments:
    """The segments of one spool folder, oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def names(self) -> list[str]:
        """Segments by age: their names are UUIDv7."""
        return sorted(p.name for p in self._folder.glob(f"*{SUFFIX}"))

    def size(self, name: str) -> int:
        """Bytes in a segment, 0 when it is gone."""
        try:
            return (self._folder / name).stat().st_size
        except FileNotFoundError:
            return 0

    def read(self, name: str, offset: int) -> Piece:
        """The whole frames from `offset` on: about a window full, at least one when there is one."""
        with (self._folder / name).open("rb") as file:
            # First whether it is closed, then its size: in this order nothing can slip in between.
            closed = _closed(file.fileno())
            size = os.fstat(file.fileno()).st_size
            length = min(max(size - offset, 0), WINDOW)
            data = os.pread(file.fileno(), length, offset)
            if len(data) >= HEADER_BYTES and (wanted := frame_bytes(memoryview(data))) > len(data):
                length = min(max(size - offset, 0), wanted)
                data = os.pread(file.fileno(), length, offset)
        whole = closed and offset + len(data) >= size
        frames = [Framed(offset + f.offset, offset + f.end, f.record) for f in decode(memoryview(data), closed=whole)]
        end = frames[-1].end if frames else offset
        return Piece(offset, end, frames, closed, size - end)

    def bytes_of(self, name: str, frame: Framed) -> bytes:
        """A frame as it lies in the segment."""
        with (self._folder / name).open("rb") as file:
            return os.pread(file.fileno(), frame.end - frame.offset, frame.offset)

    def delete(self, name: str) -> None:
        """Removes a segment whose records are all stored."""
        (self._folder / name).unlink(missing_ok=True)

    def set_aside(self, name: str, frame: Framed) -> Path:
        """Copies a frame that cannot be stored to a folder of its own, for a person to look at."""
        folder = self._folder / "rejected"
        folder.mkdir(exist_ok=True, mode=0o700)
        path = folder / f"{Path(name).stem}-{frame.offset}.record"
        path.touch(mode=0o600)
        path.write_bytes(self.bytes_of(name, frame))
        return path


def _closed(fd: int) -> bool:
    """Whether the owner is gone: it holds an exclusive lock while it lives."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(fd, fcntl.LOCK_UN)
    return True
