"""Owns the Celery application: queues, delivery guarantees, what runs by the clock. Must not hold jobs' logic.

Start it with `celery -A distill.app:app worker -Q default,judge,train` and `celery -A distill.app:app beat`.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger, after_setup_task_logger

from gateway.core.endpoints import redis_url
from gateway.core.logs import formatter

app = Celery("distill", broker=redis_url(), include=["distill.tasks"])
app.conf.update(
    task_ignore_result=True,
    task_default_queue="default",
    task_routes={"distill.advance": {"queue": "train"}},
    # A task is done when it has been done, not when somebody has begun it; a killed pool child's task returns.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # No task takes longer than seconds, so a killed worker's come back within a minute; the sweep is faster anyway.
    broker_transport_options={
        "visibility_timeout": 60,
        "unacked_restore_interval": 2,
        "unacked_restore_throttle": 1,
        "health_check_interval": 5,
        "socket_keepalive": True,
    },
    beat_schedule={"sweep": {"task": "distill.sweep", "schedule": 5.0, "options": {"expires": 5}}},
    beat_max_loop_interval=5,
)


def _one_form(logger: logging.Logger, **_: Any) -> None:
    """Celery sets up its own handlers; what they write looks like the other processes' lines."""
    for handler in logger.handlers:
        handler.setFormatter(formatter())


after_setup_logger.connect(_one_form)
after_setup_task_logger.connect(_one_form)
