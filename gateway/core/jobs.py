"""Owns waking a background job by name. Must not import the code that runs it.

Rows are the queue: a message only wakes a worker, and the sweep finds what was never woken. So a broker
that is down costs a delay, never the work.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from gateway.core.endpoints import redis_url
from gateway.core.errors import StepdownError

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)


@lru_cache
def producer() -> Celery:
    """A Celery application that only sends. Loaded with the first message: few processes of many send any."""
    from celery import Celery

    app = Celery("stepdown", broker=redis_url())
    app.conf.update(
        broker_connection_timeout=2,
        broker_transport_options={"socket_connect_timeout": 2, "socket_timeout": 2},
        task_ignore_result=True,
    )
    return app


def enqueue(name: str, *args: object, queue: str = "default") -> bool:
    """Wakes task `name` after its row was committed. Returns whether the broker took the message."""
    from kombu.exceptions import OperationalError

    try:
        producer().send_task(name, args=[str(a) for a in args], queue=queue, retry=False)
    except (OperationalError, StepdownError, OSError) as error:
        log.warning("job %s was not woken (%s); the sweep will find its row", name, error)
        return False
    return True
