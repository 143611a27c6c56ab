"""Owns how every process of ours writes its log, one line a record without the chatter of HTTP clients, and its end."""

import logging
import os
import re
from datetime import UTC, datetime
from pathlib import Path

from gateway.core import jsontext
from gateway.core.settings import settings

_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")
CHATTY = ("httpx", "httpx2")
"""Libraries that write a line for each request they send."""


class _Text(logging.Formatter):
    """A line for people. What comes from outside cannot begin a line of its own: only a traceback has several."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _CONTROL.sub(" ", super().formatMessage(record)).replace("\n", " ")


class _Json(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message; call_id and exception where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if call_id := getattr(record, "call_id", None):
            line["call_id"] = str(call_id)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return jsontext.encode(line).decode()


def formatter() -> logging.Formatter:
    """How a record becomes a line: STEPDOWN_LOG_FORMAT."""
    return _Json() if settings().log_format == "json" else _Text()


def write_logs() -> None:
    """Sends records from `STEPDOWN_LOG_LEVEL` upwards to standard error; the supervisor keeps them in a file."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter())
    logging.basicConfig(level=settings().log_level.upper(), handlers=[handler])
    logging.captureWarnings(True)
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
