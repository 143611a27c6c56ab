"""Owns the process that stores what the gateways spooled: `python -m gateway.capture.writer`.

Call, bodies, charge and the spool's cursor move in one transaction, so that each call is stored exactly once
whatever is killed. While PostgreSQL is away it waits; the segments keep everything.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from gateway.capture import repository, status, telemetry
from gateway.capture.ingest import Parsed, parse
from gateway.capture.pace import rest_s
from gateway.capture.record import Framed
from gateway.capture.retention import forgetting
from gateway.capture.segments import Segments
from gateway.capture.store import Store
from gateway.core.clock import now
from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.logs import write_logs
from gateway.core.settings import settings

log = logging.getLogger(__name__)
IDLE_S = 0.1
RETRY_S = (0.2, 0.5, 1.0, 2.0)
BATCH = 500
_REFUSED = (DataError, IntegrityError, psycopg.DataError, psycopg.IntegrityError)
PARTITIONS_EVERY_S = FORGET_EVERY_S = 24 * 3600.0


class CursorMoved(Exception):
    """The database's cursor is not where we thought: somebody else wrote, or a commit came through unseen."""


class Writer:
    """Stores the records of one spool folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segments = Segments(folder)
        self._calls = Store()
        self._cursors: dict[str, int] | None = None
        self._resting = False
        self._stop = threading.Event()
        self._partitions_at = 0.0
        self._forgetting: Iterator[None] | None = None
        self._forgot_at = 0.0
        self._status = status.WriterStatus(folder)
        self._spans = telemetry.spans(session_scope)

    def close(self) -> None:
        """To be called when `run` has returned: the last spans leave."""
        if self._spans is not None:
            self._spans.close()

    def stop(self) -> None:
        """Makes `run` return after its batch."""
        self._stop.set()

    def run(self) -> None:
        """Works until stopped. Only one writer works on a folder; another waits for its turn."""
        with _only_one(self._folder, self._stop):
            failures, self._resting = 0, True
            while not self._stop.is_set():
                try:
                    worked = self.advance() or self._forget()
                except (SQLAlchemyError, psycopg.Error, StepdownError, OSError, CursorMoved) as error:
                    self._cursors = self._forgetting = None  # a commit may have come through: the database knows
                    self._report(failures, error)
                    self._stop.wait(RETRY_S[min(failures, len(RETRY_S) - 1)])
                    failures += 1
                    continue
                if failures:
                    log.info("storing calls again")
                failures = 0
                self._status.write(self._waiting(), None)
                if not worked:
                    self._stop.wait(IDLE_S)

    def advance(self) -> bool:
        """Stores a batch of every segment that has something new. Returns whether there was any."""
        if self._cursors is None:
            with session_scope() as session:
                self._cursors = repository.cursors(session)
            self._forget_deleted()
        if time.monotonic() - self._partitions_at > PARTITIONS_EVERY_S or not self._partitions_at:
            with session_scope() as session:
                repository.ensure_partitions(session)
            self._partitions_at = time.monotonic()
        worked = False
        for name in self._segments.names():
            if self._stop.is_set():
                break
            worked |= self._advance(name)
        return worked

    def _forget(self) -> bool:
        """Once a day, while there is nothing to store: takes a step in deleting what is past its time."""
        if self._forgetting is None:
            if self._forgot_at and time.monotonic() - self._forgot_at < FORGET_EVERY_S:
                return False
            self._forgetting = forgetting(now(), session_scope)
        for _ in self._forgetting:
            return True
        self._forgetting, self._forgot_at = None, time.monotonic()
        return False

    def _advance(self, name: str) -> bool:
        assert self._cursors is not None
        piece = self._segments.read(name, self._cursors.get(name, 0))
        if piece.frames:
            for start in range(0, len(piece.frames), BATCH):
                self._store(name, piece.frames[start : start + BATCH])
        elif piece.closed and piece.left <= 0:
            self._finish(name)
        return bool(piece.frames)

    def _store(self, name: str, frames: Sequence[Framed]) -> None:
        try:
            self._store_together(name, frames)
        except _REFUSED as error:
            if len(frames) > 1:
                for frame in frames:  # find the one that the database will not take
                    self._store(name, [frame])
            else:
                self._reject(name, frames[0], str(getattr(error, "orig", error)))

    def _store_together(self, name: str, frames: Sequence[Framed]) -> None:
        assert self._cursors is not None
        began = time.monotonic()
        parsed = [p for p in (self._parsed(name, frame) for frame in frames) if p is not None]
        start, end = self._cursors.get(name, 0), frames[-1].end
        try:
            with session_scope() as session:
                self._calls.add(session, parsed)
                if not repository.move_cursor(session, name, start, end):
                    raise CursorMoved(f"the cursor of {name} is no longer at {start}")
        except BaseException:
            self._calls.forget()
            raise
        self._cursors[name] = end
        self._status.stored += len(parsed)
        if self._spans is not None:
            self._spans.add(parsed)
        if self._resting and parsed:
            self._status.write(self._waiting(), None)
            lag_s = time.time() - parsed[-1].envelope.received_ns / 1e9
            self._stop.wait(rest_s(time.monotonic() - began, lag_s))

    def _parsed(self, name: str, frame: Framed) -> Parsed | None:
        if frame.record is None:
            self._set_aside(name, frame, "its checksum is wrong")
            return None
        try:
            return parse(frame.record)
        except Exception as error:  # one unreadable record must not hold up all that follow; its bytes are kept
            id = frame.record.envelope.id
            log.exception("call %s cannot be read", id, extra={"call_id": id})
            self._set_aside(name, frame, repr(error))
            return None

    def _reject(self, name: str, frame: Framed, reason: str) -> None:
        """Passes over a record that the database will never take, keeping its bytes."""
        assert self._cursors is not None
        self._set_aside(name, frame, reason)
        with session_scope() as session:
            if not repository.move_cursor(session, name, self._cursors.get(name, 0), frame.end):
                raise CursorMoved(f"the cursor of {name} moved")
        self._cursors[name] = frame.end

    def _set_aside(self, name: str, frame: Framed, reason: str) -> None:
        path = self._segments.set_aside(name, frame)
        self._status.rejected += 1
        log.error("a record was put aside as %s: %s", path, reason.splitlines()[0])

    def _finish(self, name: str) -> None:
        """Deletes a segment that is closed and stored: first the file, so that no cursor is lost before it."""
        assert self._cursors is not None
        self._segments.delete(name)
        with session_scope() as session:
            repository.forget_cursor(session, name)
        self._cursors.pop(name, None)

    def _forget_deleted(self) -> None:
        """Drops cursors whose segment went, as after a kill between the two halves of `_finish`."""
        assert self._cursors is not None
        for name in set(self._cursors) - set(self._segments.names()):
            with session_scope() as session:
                repository.forget_cursor(session, name)
            del self._cursors[name]

    def _waiting(self) -> int:
        known = self._cursors or {}
        return sum(max(self._segments.size(n) - known.get(n, 0), 0) for n in self._segments.names())

    def _report(self, failures: int, error: Exception) -> None:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if failures == 0:
            log.warning("calls wait in %s: %s", self._folder, reason)
        self._status.write(self._waiting(), reason)


@contextmanager
def _only_one(folder: Path, stop: threading.Event) -> Iterator[None]:
    """Waits for the folder's lock, which the kernel frees when its holder dies."""
    fd = os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not stop.is_set():
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            stop.wait(0.5)
        yield
    finally:
        os.close(fd)


def main() -> None:
    """Runs the writer until SIGTERM or SIGINT."""
    write_logs()
    writer = Writer(settings().spool_dir)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: writer.stop())
    log.info("storing what is spooled in %s", settings().spool_dir)
    writer.run()
    writer.close()


if __name__ == "__main__":
    main()
