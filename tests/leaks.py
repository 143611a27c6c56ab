"""What must be in no log: keys, tokens, credentials."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path

SECRETS = re.compile(r"sdp?-[A-Za-z0-9_-]{43}|sk-upstream-secret|sk-proj-theirs|(?i:bearer) [A-Za-z0-9_.-]{20,}")

_CLIENTS = ("httpx", "httpx2", "httpcore", "openai")
"""Loggers of those who ask in the tests: what they say is not ours."""


def in_records(records: Iterable[logging.LogRecord]) -> list[str]:
    """The lines that hold a secret, exceptions included."""
    formatter = logging.Formatter()
    ours = [record for record in records if record.name.split(".")[0] not in _CLIENTS]
    return [line for line in map(formatter.format, ours) if SECRETS.search(line)]


def in_logs(folder: Path) -> list[str]:
    """The lines of log files that hold a secret."""
    files = folder.rglob("*.log") if folder.is_dir() else ()
    lines = [line for file in files for line in file.read_text(errors="replace").splitlines()]
    return [line for line in lines if SECRETS.search(line)]
