"""Logs stay bounded and give the reason of a death; the view says what changed, once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gateway.core.logs import last_line
from gateway.supervisor.logs import rotate
from gateway.supervisor.service import Policy, address
from gateway.supervisor.view import View, duration

ROW: dict[str, Any] = {
    "name": "gateway",
    "state": "ready",
    "pid": 7,
    "since": 0.0,
    "restarts": 2,
    "detail": "",
    "url": "http://127.0.0.1:8787",
}


def test_a_log_over_the_cap_is_moved_aside_while_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 11)
        assert not rotate(log, cap=11)
        assert rotate(log, cap=10)
        writer.write(b"after")
    assert (tmp_path / "a.log.1").read_text() == "x" * 11
    assert log.read_text() == "after"


def test_the_last_line_is_of_this_start_and_without_colours(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("old reason\n")
    since = log.stat().st_size
    assert last_line(log, since) == ""
    log.write_text("old reason\n\x1b[31mout of memory\x1b[0m\n\n  \n")
    assert last_line(log, since) == "out of memory"
    assert last_line(tmp_path / "none") == ""


def test_plain_output_has_one_line_per_change_and_a_terminal_gets_the_table() -> None:
    plain = io.StringIO()
    with View(Console(file=plain, force_terminal=False), "http://a") as view:
        view.show([ROW])
        view.show([ROW])
        view.show([{**ROW, "state": "restarting", "detail": "exit 1: boom"}])
    lines = plain.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].endswith("restarting  exit 1: boom")
    terminal = io.StringIO()
    with View(Console(file=terminal, force_terminal=True, width=120), "http://a") as view:
        view.show([ROW])
    assert "restarts" in terminal.getvalue()
    assert "http://127.0.0.1:8787" in terminal.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(12, "12 s"), (60, "1 min"), (7300, "2 h"), (200000, "2 d")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_delays_double_to_a_ceiling() -> None:
    policy = Policy(first_delay_s=0.5, longest_delay_s=30)
    assert [policy.delay_s(n) for n in (1, 2, 3, 7, 50)] == [0.5, 1.0, 2.0, 30.0, 30.0]


def test_addresses_are_ones_a_browser_can_open() -> None:
    assert address("0.0.0.0", 80) == "http://127.0.0.1:80"
    assert address("::", 80) == "http://[::1]:80"
