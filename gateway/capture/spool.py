"""Owns this process's spool segment: one append per call before its last byte leaves. Must not parse bodies.

The lock held on the segment tells the writer that its owner lives; the kernel drops it with the process,
so a segment is closed exactly when nobody can append to it any more.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from pathlib import Path

from gateway.capture.record import Envelope, encode
from gateway.core import metrics
from gateway.core.ids import new_id

log = logging.getLogger(__name__)

SUFFIX = ".spool"
ROTATE_BYTES = 64 * 1024 * 1024
ROTATE_S = 60.0
FSYNC_S = 0.05
_IOV_MAX = os.sysconf("SC_IOV_MAX")


class Spool:
    """Appends records to a segment file of its own. `append` never raises: a full disk costs the record, not the call.

    A thread groups the fsyncs (every 50 ms) and closes a segment that is old, so that the writer can delete it.
    """

    def __init__(self, folder: Path, rotate_bytes: int = ROTATE_BYTES, rotate_s: float = ROTATE_S) -> None:
        self._folder = folder
        self._rotate_bytes = rotate_bytes
        self._rotate_s = rotate_s
        self._lock = threading.Lock()
        self._fd: int | None = None
        self._size = 0
        self._opened = 0.0
        self._dirty = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: str | None = None
        """Why the last append failed; None while all is well."""
        self.lost = 0
        """Records that could not be written since the start."""

    def start(self) -> None:
        """Starts the thread that syncs and rotates."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._thread = threading.Thread(target=self._keep, name="spool-sync", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the thread, syncs and closes the segment."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._close_segment()

    def append(self, envelope: Envelope, request: bytes, response: list[bytes]) -> bool:
        """Writes one record. Returns False, counts and logs where it could not be written."""
        buffers = encode(envelope, request, response)
        if len(buffers) > _IOV_MAX:
            buffers = [*buffers[:4], b"".join(response)]
        try:
            with self._lock:
                self._write(buffers)
        except OSError as error:
            if self.failure is None:
                log.error("calls are served but not captured: %s (%s)", error.strerror, self._folder)
            self.failure = f"{error.strerror} in {self._folder}"
            self.lost += 1
            metrics.CAPTURE_LOST.inc()
            return False
        self.failure = None
        return True

    def _write(self, buffers: list[bytes]) -> None:
        if self._fd is None:
            self._open_segment()
        assert self._fd is not None
        total = sum(map(len, buffers))
        try:
            written = os.writev(self._fd, buffers)
        except OSError:
            self._take_back()
            raise
        if written != total:
            # A full disk takes what fits: half a record must not stay in front of the next one.
            self._take_back()
            raise OSError(28, "No space left on device")
        self._size += total
        self._dirty = True
        if self._size >= self._rotate_bytes:
            self._close_segment()

    def _take_back(self) -> None:
        assert self._fd is not None
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            # The torn tail stays; the reader passes over it. Go on in a new segment.
            self._close_segment()

    def _open_segment(self) -> None:
        path = self._folder / f"{new_id()}{SUFFIX}"
        fresh = path.with_suffix(".new")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        # Locked before it gets the name that the writer looks for, or the writer could take it for an orphan.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(path)
        self._fd, self._size, self._opened = fd, 0, time.monotonic()

    def _close_segment(self) -> None:
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def _keep(self) -> None:
        while not self._stop.wait(FSYNC_S):
            with self._lock:
                fd, dirty, self._dirty = self._fd, self._dirty, False
                if fd is not None and self._size and time.monotonic() - self._opened > self._rotate_s:
                    self._rotate()
                    continue
                copy = os.dup(fd) if fd is not None and dirty else None
            if copy is not None:
                self._sync(copy)

    def _rotate(self) -> None:
        try:
            self._close_segment()
        except OSError as error:
            self._sync_failed(error)

    def _sync(self, fd: int) -> None:
        # On a duplicate and without the lock: appends go on while the disk works.
        try:
            os.fdatasync(fd)
        except OSError as error:
            self._sync_failed(error)
        finally:
            os.close(fd)

    def _sync_failed(self, error: OSError) -> None:
        self.failure = f"{error.strerror} in {self._folder}"
        log.error("the spool could not be synced: %s", self.failure)
