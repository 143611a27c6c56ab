"""Owns forgetting calls in time: a step of work at a time, so that storing new ones never waits long for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime

from sqlalchemy.orm import Session

from gateway.capture import repository
from gateway.capture.deletion import expire, sweep
from gateway.capture.partitions import months_around

log = logging.getLogger(__name__)


def forgetting(now: datetime, transaction: Callable[[], AbstractContextManager[Session]]) -> Iterator[None]:
    """Deletes, step by step, the calls whose project, key or route keeps them no longer, and what only they used.

    `transaction` begins one, for each step, that commits at its end.
    """
    with transaction() as session:
        projects = repository.projects_that_forget(session)
    for project_id in projects:
        gone, total = 1, 0
        while gone:
            yield
            with transaction() as session:
                gone = expire(session, project_id, now)
            total += gone
        if total:
            with transaction() as session:
                sweep(session, project_id)
            log.info("project %s: %d calls were past their time and are deleted", project_id, total)
    with transaction() as session:
        repository.drop_empty_months(session, before=months_around(now)[0])
