"""The supervisor keeps real processes running, stops every one of them, and cleans up after its own death."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from gateway.core.errors import StepdownError
from gateway.core.processes import Identity, identify
from gateway.supervisor.instance import Lock, end_orphans, read_state, refuse_second
from tests.gateway.supervisor.harness import Running, eventually, kill

SLEEP = {"name": "sleeper", "argv": ["sleep", "600"]}
# A child whose own child has left for a session of its own, as a trainer's does.
BREEDER = {
    "name": "breeder",
    "argv": ["sh", "-c", "setsid sleep 601 & exec sleep 600"],
}


def test_a_killed_child_is_started_again(home: Path) -> None:
    with Running(home, [SLEEP]) as running:
        eventually(lambda: running.child("sleeper")["state"] == "ready")
        first = running.child("sleeper")["pid"]
        kill(first)
        eventually(lambda: running.child("sleeper")["state"] == "ready" and running.child("sleeper")["pid"] != first)
        assert running.child("sleeper")["restarts"] == 1
        assert running.stop() == 0


def test_a_child_and_its_descendants_step_back_for_others(home: Path) -> None:
    with Running(home, [{**BREEDER, "nice": 7}]) as running:
        lower = min(19, psutil.Process().nice() + 7)
        eventually(lambda: [process.nice() for process in running.alive()] == [lower, lower])
        assert running.stop() == 0


def test_a_child_that_keeps_dying_is_restarted_ever_more_slowly_and_says_why(home: Path) -> None:
    log = home / "times"
    dying = ["sh", "-c", f"date +%s.%N >> {log}; echo no such model; exit 3"]
    with Running(home, [{"name": "dying", "argv": dying, "policy": {"first_delay_s": 0.2}}]) as running:
        eventually(lambda: log.exists() and len(log.read_text().split()) >= 5)
        times = [float(each) for each in log.read_text().split()[:5]]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert [gap >= wanted for gap, wanted in zip(gaps, (0.2, 0.4, 0.8, 1.6), strict=True)] == [True] * 4, gaps
        eventually(lambda: running.child("dying").get("detail") == "exit 3: no such model")
        assert running.stop() == 0


def test_stages_start_in_order_and_stop_in_reverse(home: Path) -> None:
    log = home / "order"
    script = (
        "import signal, sys, time\n"
        f"note = lambda word: open({str(log)!r}, 'a').write(word + sys.argv[1] + '\\n')\n"
        "signal.signal(signal.SIGTERM, lambda *_: (note('-'), sys.exit()))\n"
        "note('+')\ntime.sleep(600)"
    )
    first = {"name": "once", "argv": ["sh", "-c", f"sleep 0.5; echo +1 >> {log}"], "policy": {"once": True}}
    second = {"name": "second", "argv": [sys.executable, "-c", script, "2"]}
    third = {"name": "third", "argv": [sys.executable, "-c", script, "3"]}
    # Ready means running here, so what tells the stages apart is the first one's end.
    with Running(home, [first], [second], [third]) as running:
        eventually(lambda: log.exists() and len(log.read_text().split()) == 3)
        assert log.read_text().split()[0] == "+1"
        eventually(lambda: running.state.phase == "up")
        assert running.stop() == 0
        assert log.read_text().split()[-2:] == ["-3", "-2"]
        assert running.state.phase == "stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_leaves_no_process_behind_not_even_one_in_its_own_session(home: Path, number: signal.Signals) -> None:
    with Running(home, [BREEDER, SLEEP]) as running:
        eventually(lambda: len(running.alive()) == 3)
        assert running.stop(number) == 0
        assert running.alive() == []


def test_a_child_that_ignores_the_signal_is_killed_after_its_grace(home: Path) -> None:
    stubborn = {"name": "stubborn", "argv": ["sh", "-c", "trap '' TERM INT; sleep 600; sleep 600"], "grace_s": 0.5}
    with Running(home, [stubborn]) as running:
        eventually(lambda: len(running.alive()) == 2)
        assert running.stop() == 0
        assert running.alive() == []


def test_a_second_signal_does_not_wait_for_the_grace(home: Path) -> None:
    stubborn = {"name": "stubborn", "argv": ["sh", "-c", "trap '' TERM INT; sleep 600; sleep 600"], "grace_s": 500}
    with Running(home, [stubborn]) as running:
        eventually(lambda: len(running.alive()) == 2)
        running.process.send_signal(signal.SIGINT)
        eventually(lambda: running.state.phase == "stopping")
        assert running.stop(signal.SIGINT) == 0
        assert running.alive() == []


def test_something_essential_that_cannot_start_stops_everything_with_its_reason(home: Path) -> None:
    broken = {
        "name": "broken",
        "argv": ["sh", "-c", "echo disk full; exit 1"],
        "policy": {"give_up": "before_ready", "deaths": 2, "first_delay_s": 0.05},
    }
    with Running(home, [SLEEP], [{**broken, "policy": {**broken["policy"], "once": True}}]) as running:
        assert running.process.wait(20) == 1
        assert "broken does not start: exit 1: disk full" in running.said()
        assert running.alive() == []


def test_the_next_start_ends_what_a_killed_supervisor_left(home: Path) -> None:
    with Running(home, [BREEDER, SLEEP]) as running:
        eventually(lambda: len(running.alive()) == 3 and running.child("sleeper")["state"] == "ready")
        old = running.alive()
        running.process.kill()
        running.process.wait()
        assert len(running.alive()) == 3
        with Running(home, [SLEEP]) as again:
            assert "ended: breeder sleeper" in again.said()
            assert not set(old) & set(again.alive() + running.alive())
            assert again.stop() == 0


def test_a_recorded_pid_that_is_somebody_else_now_is_spared(home: Path) -> None:
    with Running(home, [SLEEP]) as running:
        eventually(lambda: running.child("sleeper")["state"] == "ready")
        running.process.kill()
        running.process.wait()
        assert len(running.alive()) == 1
        with subprocess.Popen(["sleep", "60"]) as stranger:
            raw = json.loads((home / "state.json").read_text())
            raw["children"][0]["pid"] = stranger.pid  # with the start of another
            (home / "state.json").write_text(json.dumps(raw))
            assert end_orphans(home) == []
            assert stranger.poll() is None
            stranger.kill()
        assert running.alive() == []  # found by its mark


def test_a_second_supervisor_is_refused_with_pid_and_address(home: Path) -> None:
    with Running(home, [SLEEP]) as running:
        with pytest.raises(StepdownError, match=rf"pid {running.process.pid}, http://127.0.0.1:1"):
            Lock(home)
        with pytest.raises(StepdownError, match="already runs"):
            refuse_second(home)
        assert running.stop() == 0
    refuse_second(home)
    Lock(home).release()


def test_a_stale_pid_file_and_state_of_a_living_stranger_are_ignored(home: Path) -> None:
    with Running(home, [SLEEP]) as running, subprocess.Popen(["sleep", "60"]) as stranger:
        running.process.kill()
        running.process.wait()
        raw = json.loads((home / "state.json").read_text())
        raw["supervisor"]["pid"] = stranger.pid
        (home / "state.json").write_text(json.dumps(raw))
        (home / "supervisor.pid").write_text(f"{stranger.pid}\n")
        refuse_second(home)
        with Running(home, [SLEEP]) as again:
            eventually(lambda: again.child("sleeper")["state"] == "ready")
            assert again.stop() == 0
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"supervisor": 3}'])
def test_a_torn_state_file_counts_as_none(home: Path, text: str) -> None:
    (home / "state.json").write_text(text)
    assert read_state(home) is None
    assert end_orphans(home) == []


def test_an_identity_tells_a_reused_pid_and_a_zombie_from_the_process() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert me.alive()
    assert not Identity(me.pid, me.started + "0").alive()
    with subprocess.Popen(["true"]) as zombie:
        eventually(lambda: psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE)
        assert identify(zombie.pid) is None
    assert identify(2**22 + 1) is None
