"""A record is one line, in words or as JSON, and what comes from outside cannot forge another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import logging, warnings
from gateway.core.logs import write_logs
write_logs()
logging.getLogger("some.library").warning("from %s", "a library")
logging.getLogger("x").warning("one\\nERROR forged\\x1b[31m \\ud83d", extra={"call_id": "id-1"})
warnings.warn("an old way")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("x").exception("it failed")
"""


def written(log_format: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("STEPDOWN_LOG_FORMAT", log_format)
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


def test_json_is_an_object_a_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, forged, warned, failed = [json.loads(line) for line in written("json", home, monkeypatch)]
    assert (first["level"], first["logger"], first["message"]) == ("warning", "some.library", "from a library")
    assert first["time"].endswith("+00:00")
    assert "call_id" not in first
    assert forged["call_id"] == "id-1"
    assert forged["message"].startswith("one\nERROR forged")
    assert "an old way" in warned["message"]
    assert failed["message"] == "it failed"
    assert "ZeroDivisionError" in failed["exception"]


def test_text_is_a_line_a_record(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, forged, *_ = written("text", home, monkeypatch)
    assert first.endswith("WARNING some.library: from a library")
    assert "WARNING x: one ERROR forged" in forged
    assert "\x1b" not in forged
