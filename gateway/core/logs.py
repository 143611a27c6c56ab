"""Owns how every process of ours writes its log: one line a record, without the chatter of HTTP clients."""

import logging

from gateway.core.settings import settings

CHATTY = ("httpx", "httpx2")
"""Libraries that write a line for each request they send."""


def write_logs() -> None:
    """Sends records from `STEPDOWN_LOG_LEVEL` upwards to standard error; the supervisor keeps them in a file."""
    logging.basicConfig(level=settings().log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
