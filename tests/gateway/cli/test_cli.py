"""The `stepdown` command as a person meets it: a whole system, and one clear line for everything that is wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from gateway.core.ports import free_port
from gateway.core.processes import marked, working_in
from gateway.supervisor.instance import MARK, State, read_state
from tests.gateway.supervisor.harness import eventually


class Installation(NamedTuple):
    """A home and a port of its own."""

    home: Path
    port: int

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("STEPDOWN_")}
        for name in ("DATABASE_URL", "REDIS_URL"):
            clean.pop(name, None)
        own = {"STEPDOWN_HOME": str(self.home), "STEPDOWN_PORT": str(self.port), "COLUMNS": "160"}
        command = [sys.executable, "-m", "gateway.cli", *arguments]
        return subprocess.run(
            command, env={**clean, **own, **env}, capture_output=True, text=True, check=False, timeout=150
        )

    @property
    def state(self) -> State:
        state = read_state(self.home)
        assert state is not None
        return state

    def pid(self, name: str) -> int:
        pid: int = next(child["pid"] for child in self.state.children if child["name"] == name)
        return pid

    def ready(self, name: str, other_than: int = 0) -> bool:
        child = next(child for child in self.state.children if child["name"] == name)
        return child["state"] == "ready" and child["pid"] != other_than

    def get(self, path: str, token: str) -> int:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"authorization": f"Bearer {token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@pytest.fixture
def fresh(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "home", free_port())


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A whole running system."""
    made = Installation(tmp_path_factory.mktemp("stack") / "home", free_port())
    started = made.run(
        "up", "--detach", "--workers", "2", STEPDOWN_LOG_LEVEL="error"
    )  # what is logged must not decide what is ready
    assert started.returncode == 0, started.stderr + started.stdout
    token = (made.home / "secrets" / "admin.token").read_text()
    first, *_ = started.stdout.splitlines()
    assert f"http://127.0.0.1:{made.port}" in first
    assert token in first
    yield made
    made.run("down")


def test_status_shows_every_process_and_that_no_student_is_deployed(stack: Installation) -> None:
    shown = stack.run("status")
    assert shown.returncode == 0, shown.stdout
    for name in ("postgres", "valkey", "writer", "gateway 1", "gateway 2", "worker", "beat"):
        assert f"{stack.pid(name)}" in shown.stdout
    assert f"http://127.0.0.1:{stack.port}" in shown.stdout


def test_a_second_up_names_pid_and_address(stack: Installation) -> None:
    refused = stack.run("up")
    assert refused.returncode == 1
    assert (
        f"already runs in {stack.home}: pid {stack.state.supervisor.pid}, http://127.0.0.1:{stack.port}"
        in refused.stderr
    )
    assert len(refused.stderr.splitlines()) == 1


def test_a_key_is_shown_once_works_and_is_revoked(stack: Installation) -> None:
    none = stack.run("keys", "list")
    assert (none.returncode, none.stdout) == (0, "")
    assert "Project 'default' has no keys" in none.stderr
    made = stack.run("keys", "create", "--name", "shop")
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    eventually(lambda: stack.get("/v1/models", key) == 200)
    assert stack.run("keys", "create", "--name", "busy", "--max-concurrent", "5").returncode == 0
    assert stack.run("keys", "create", "--max-concurrent", "0").returncode == 2
    listed = stack.run("keys", "list").stdout
    assert "at most 5 calls at once" in listed
    assert stack.run("keys", "revoke", listed.split()[0]).returncode == 0
    listed = listed.partition("\n")[2]
    assert "shop" in listed
    assert key not in listed
    assert stack.run("keys", "revoke", listed.split()[0]).returncode == 0
    eventually(lambda: stack.get("/v1/models", key) == 401)
    assert "revoked" in stack.run("keys", "list").stdout
    unknown = stack.run("keys", "list", "--project", "nowhere")
    assert unknown.returncode == 1
    assert "There is no project 'nowhere'. Projects: default." in unknown.stderr


def test_doctor_looks_at_what_runs(stack: Installation) -> None:
    found = {f["check"]: f for f in json.loads(stack.run("doctor", "--json").stdout)["findings"]}
    states = {name: found[name]["state"] for name in ("port", "database", "schema", "redis", "writer")}
    assert set(states.values()) == {"ok"}, found
    assert "processes" not in found
    assert f"Stepdown runs: http://127.0.0.1:{stack.port}" in found["port"]["what"]


def test_what_is_killed_comes_back_and_nothing_is_forgotten(stack: Installation) -> None:
    token = (stack.home / "secrets" / "admin.token").read_text()
    for name in ("postgres", "valkey", "gateway 1", "gateway 2", "writer", "worker", "beat"):
        pid = stack.pid(name)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda name=name, pid=pid: stack.ready(name, other_than=pid), 40)
    eventually(lambda: stack.get("/api/projects", token) == 200)
    database = json.loads((stack.home / "secrets" / "endpoints.json").read_text())["database"]
    with psycopg.connect(database) as connection:
        assert connection.execute("select name from project").fetchall() == [("default",)]
    assert stack.run("db", "migrate").returncode == 0


def test_down_ends_what_a_killed_supervisor_left_and_all_the_rest(stack: Installation) -> None:
    state = stack.state
    engines = [stack.home / "postgres", stack.home / "valkey"]
    os.kill(state.supervisor.pid, signal.SIGKILL)
    eventually(lambda: not state.running)
    assert "was killed" in stack.run("status").stdout
    assert all(working_in(folder) for folder in engines)
    assert marked(MARK, state.token)
    ended = stack.run("down")
    assert ended.returncode == 0, ended.stderr
    assert "postgres" in ended.stdout
    assert not any(working_in(folder) for folder in engines)
    assert marked(MARK, state.token) == []
    again = stack.run("up", "--detach")
    assert again.returncode == 0, again.stderr
    token = stack.state.token
    assert stack.run("down").stdout.strip() == "Everything has stopped."
    assert marked(MARK, token) == []
    assert not any(working_in(folder) for folder in engines)
    assert stack.run("status").returncode == 3
    assert not stack.state.running


def test_a_taken_port_names_its_holder(fresh: Installation) -> None:
    with socket.create_server(("127.0.0.1", fresh.port)):
        refused = fresh.run("up")
    assert refused.returncode == 1
    assert f"Port {fresh.port} on 127.0.0.1 is taken by" in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "--port N" in refused.stderr
    assert not (fresh.home / "postgres").exists()


def test_a_home_that_cannot_be_written_is_named(fresh: Installation, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments in (["up"], ["up", "--detach"]):
        refused = Installation(tmp_path / "file" / "home", fresh.port).run(*arguments)
        assert refused.returncode == 1
        assert f"{tmp_path}/file/home cannot be written" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_a_full_disk_is_said_before_anything_starts(fresh: Installation) -> None:
    script = (
        "import gateway.core.home as h, gateway.cli, sys; h.MIN_FREE_MB = 10**9; sys.argv = ['stepdown', 'up'];"
        "gateway.cli.main()"
    )
    env = {**os.environ, "STEPDOWN_HOME": str(fresh.home), "STEPDOWN_PORT": str(fresh.port)}
    refused = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "MB free" in refused.stderr
    assert "Free some space" in refused.stderr


def test_without_anything_running_each_command_says_what_to_do(fresh: Installation) -> None:
    assert fresh.run("status").returncode == 3
    assert "does not run" in fresh.run("down").stdout
    no_token = fresh.run("keys", "list")
    assert no_token.returncode == 1
    assert "Run `stepdown up`" in no_token.stderr
    unreachable = fresh.run("keys", "list", STEPDOWN_ADMIN_TOKEN="x")
    assert "does not answer" in unreachable.stderr
    no_database = fresh.run("db", "migrate")
    assert no_database.returncode == 1
    assert "Run `stepdown up`, or set DATABASE_URL." in no_database.stderr
    away = fresh.run("db", "migrate", DATABASE_URL=f"postgresql://u:secret@127.0.0.1:{fresh.port}/x")
    assert away.returncode == 1
    assert "PostgreSQL does not answer" in away.stderr
    assert "secret" not in away.stderr


def test_a_database_that_does_not_answer_stops_the_start_with_the_reason(fresh: Installation) -> None:
    away = f"postgresql://u:p@127.0.0.1:{free_port()}/x"
    refused = fresh.run("up", "--detach", DATABASE_URL=away, REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    assert refused.returncode == 1
    assert "bootstrap does not start" in refused.stderr
    assert "PostgreSQL does not answer" in refused.stderr
    assert not (fresh.home / "postgres").exists()


def test_doctor_names_what_is_missing(fresh: Installation) -> None:
    found = fresh.run("doctor")
    assert found.returncode == 1
    assert "NO  base model" in found.stdout
    assert "ok  Python 3.11" in found.stdout
