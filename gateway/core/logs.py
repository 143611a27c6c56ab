"""Owns how every process of ours writes its log, one line a record without the chatter of HTTP clients, and its end."""

import logging
import os
import re
from pathlib import Path

from gateway.core.settings import settings

_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")
CHATTY = ("httpx", "httpx2")
"""Libraries that write a line for each request they send."""


def write_logs() -> None:
    """Sends records from `STEPDOWN_LOG_LEVEL` upwards to standard error; the supervisor keeps them in a file."""
    logging.basicConfig(level=settings().log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


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
