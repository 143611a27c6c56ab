"""Owns keeping a run's lease while its trainer works, in a thread. Must not decide anything but when to end.

A trainer that lost its lease ends at once and takes its engines with it: somebody else works on the run now.
"""

from __future__ import annotations

import logging
import os
import threading

from sqlalchemy.exc import DBAPIError

from distill import trainers
from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.runs import lease
from gateway.runs.lease import Lease, LeaseLost

log = logging.getLogger(__name__)
LOST = 75  # EX_TEMPFAIL: not this process's failure, another one goes on


class Heartbeat(threading.Thread):
    """Extends the lease six times in its length. A database that cannot be reached is tried again: the fence holds."""

    def __init__(self, held: Lease) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._lease = held
        self._owner = trainers.my_name()
        self._stop = threading.Event()

    def beat(self) -> None:
        """Extends the lease once. Raises LeaseLost."""
        with session_scope() as session:
            lease.extend(session, self._lease, self._owner, settings().lease_s)

    def run(self) -> None:
        while not self._stop.wait(settings().lease_s / 6):
            try:
                self.beat()
            except LeaseLost:
                self._end()
            except DBAPIError as error:
                log.warning("the lease could not be extended, trying again: %s", error.orig or error)

    def stop(self) -> None:
        """Stops extending: the trainer is about to write its last word. Must come before it."""
        self._stop.set()

    def _end(self) -> None:
        if self._stop.is_set():
            return
        log.error("run %s: the lease of epoch %d is lost, ending", self._lease.run_id, self._lease.epoch)
        trainers.clear_workplace(trainers.workplace(self._lease))
        os._exit(LOST)
