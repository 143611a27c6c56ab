"""The embedded engines survive what happens to them: kills, stale files, taken ports, interrupted installs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from gateway.core.embedded import Postgres, Valkey, running, unprivileged
from gateway.core.errors import StepdownError
from gateway.core.processes import Launch, end, working_in


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose database was made, and stopped."""
    folder = tmp_path_factory.mktemp("template")
    with running(Postgres(folder, {"fsync": "off"}), folder / "log"):
        pass
    (folder / "postgres.port").unlink()
    return folder


@pytest.fixture
def made(home: Path, template: Path) -> Path:
    """This test's home with its database already made: making one takes longer than most tests."""
    shutil.copytree(template, home, dirs_exist_ok=True)
    return home


def eventually(check: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def value(url: str, query: str) -> object:
    with psycopg.connect(url, connect_timeout=2) as connection:
        row = connection.execute(query).fetchone()
        return row[0] if row else None


def test_rows_survive_kill_9_of_the_postmaster_while_a_backend_is_busy(made: Path) -> None:
    first = Postgres(made)
    with running(first, made / "log") as postmaster:
        with psycopg.connect(first.url, autocommit=True) as connection:
            connection.execute("create table kept (n int)")
            connection.execute("insert into kept values (7)")
        busy = subprocess.Popen(
            [sys.executable, "-c", _BUSY, first.url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert busy.stdout is not None
        assert busy.stdout.readline() == b"busy\n"
        eventually(
            lambda: value(first.url, "select count(*) from pg_stat_activity where query like '%busy loop%'") == 2
        )
        os.kill(postmaster.pid, signal.SIGKILL)
        postmaster.wait()
        assert working_in(first.data), "the busy backend should have outlived its postmaster, or this proves nothing"

        second = Postgres(made)
        with running(second, made / "log"):
            assert second.port == first.port
            assert value(second.url, "select n from kept") == 7
        busy.kill()
        busy.wait()
    assert working_in(first.data) == []


_BUSY = """
import sys, psycopg
connection = psycopg.connect(sys.argv[1])
print("busy", flush=True)
connection.execute("do $$ begin /* busy loop */ loop end loop; end $$")
"""


def test_a_stale_postmaster_pid_of_a_living_stranger_is_ignored(made: Path) -> None:
    postgres = Postgres(made)
    with running(postgres, made / "log"):
        note = (postgres.data / "postmaster.pid").read_text().splitlines()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        note[0] = str(stranger.pid)
        (postgres.data / "postmaster.pid").write_text("\n".join(note) + "\n")
        again = Postgres(made)
        with running(again, made / "log"):
            assert value(again.url, "select 1") == 1
        assert stranger.poll() is None
        stranger.kill()


def test_a_taken_port_is_left_alone_and_another_chosen(made: Path) -> None:
    postgres, valkey = Postgres(made), Valkey(made)
    with running(postgres, made / "log"), running(valkey, made / "log"):
        ports = postgres.port, valkey.port
    with socket.create_server(("127.0.0.1", ports[0])), socket.create_server(("127.0.0.1", ports[1])):
        with running(postgres, made / "log"), running(valkey, made / "log"):
            assert postgres.port not in ports
            assert valkey.port not in ports
            assert value(postgres.url, "select 1") == 1
        moved = postgres.port
    with running(postgres, made / "log"):
        assert postgres.port == moved


def test_a_server_left_by_a_killed_run_is_ended_before_a_new_one_starts(made: Path) -> None:
    orphan = Postgres(made)
    with running(orphan, made / "log") as left:
        again = Postgres(made)
        with running(again, made / "log"):
            assert left.wait(5) == 0
            assert value(again.url, "select 1") == 1


def test_an_interrupted_initdb_is_done_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = home / "slow-initdb"
    slow.write_text('#!/bin/sh\nmkdir -p "$2/base" && echo 18 > "$2/PG_VERSION" && exec sleep 60\n')
    slow.chmod(0o755)
    script = (
        "import sys; from pathlib import Path; import gateway.core.embedded.postgres as m;"
        "m._binary = lambda name: Path(sys.argv[2]); m.Postgres(Path(sys.argv[1])).prepare()"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(home), str(slow)], start_new_session=True) as install:
        eventually((home / "postgres.partial/data/PG_VERSION").exists)
        os.killpg(install.pid, signal.SIGKILL)
    assert not (home / "postgres").exists()
    postgres = Postgres(home)
    with running(postgres, home / "log"):
        assert value(postgres.url, "select 1") == 1
    assert not (home / "postgres.partial").exists()


def test_a_data_folder_without_a_database_is_set_aside_not_deleted(home: Path) -> None:
    postgres = Postgres(home)
    postgres.data.mkdir(mode=0o700)
    (postgres.data / "PG_VERSION").write_text("18\n")
    with running(postgres, home / "log"):
        assert value(postgres.url, "select 1") == 1
    [aside] = home.glob("postgres.incomplete-*")
    assert (aside / "PG_VERSION").read_text() == "18\n"


def test_another_major_version_is_refused_and_untouched(made: Path) -> None:
    postgres = Postgres(made)
    with running(postgres, made / "log"):
        pass
    (postgres.data / "PG_VERSION").write_text("15\n")
    with pytest.raises(StepdownError, match="written by PostgreSQL 15"):
        postgres.prepare()


def test_a_lost_password_is_explained(made: Path) -> None:
    postgres = Postgres(made)
    with running(postgres, made / "log"):
        secret = made / "secrets" / "postgres.password"
        right = secret.read_text()
        secret.write_text("wrong")
        with pytest.raises(StepdownError, match="another password"):
            postgres.probe()
        secret.write_text(right)
        assert postgres.probe()


def test_neither_engine_lets_in_a_client_without_the_password_or_from_outside(home: Path) -> None:
    postgres, valkey = Postgres(home), Valkey(home)
    with running(postgres, home / "log"), running(valkey, home / "log"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(f"postgresql://stepdown@127.0.0.1:{postgres.port}/postgres", connect_timeout=2)
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=valkey.port).ping()
        for port in (postgres.port, valkey.port):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.2", port), timeout=2)
        for process in [*working_in(postgres.data), *working_in(valkey.data)]:
            assert postgres._password() not in " ".join(process.cmdline())
            assert valkey._password() not in " ".join(process.cmdline())
    for path in (home / "secrets").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(postgres.data.stat().st_mode) == 0o700


def test_valkey_keeps_what_was_written_a_second_before_kill_9(home: Path) -> None:
    valkey = Valkey(home)
    with running(valkey, home / "log") as server:
        client = redis.Redis.from_url(valkey.url)
        client.rpush("queue", "job")
        client.waitaof(1, 0, 5000)
        server.kill()
        server.wait()
        with running(valkey, home / "log"):
            assert redis.Redis.from_url(valkey.url).lrange("queue", 0, -1) == [b"job"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root must become somebody else")
def test_root_without_namespaces_becomes_nobody_or_says_which_folder_is_closed(
    home: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(unprivileged, "_namespace", lambda: None)
    with pytest.raises(StepdownError, match="may not enter"):
        Postgres(home).prepare()  # pytest's own temporary folders are closed to others
    parents = [p for p in home.parents if not p.stat().st_mode & stat.S_IXOTH]
    for folder in [*parents, home]:
        request.addfinalizer(partial(folder.chmod, stat.S_IMODE(folder.stat().st_mode)))
        folder.chmod(0o711)
    postgres = Postgres(home)
    if unprivileged._first_closed([Path(sys.prefix)]) is not None:
        pytest.skip("this environment lies in a folder closed to other users")
    with running(postgres, home / "log"):
        assert value(postgres.url, "select 1") == 1
        assert {p.username() for p in working_in(postgres.data)} == {"nobody"}


def test_a_user_without_an_account_appears_as_one_or_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 7)
    monkeypatch.setattr(unprivileged, "_namespace", lambda: ["unshare", "--user"])
    assert unprivileged.as_unprivileged(Launch(["postgres"]), owned=[]).argv == ["unshare", "--user", "postgres"]
    monkeypatch.setattr(unprivileged, "_namespace", lambda: None)
    with pytest.raises(StepdownError, match=f"user id {2**31 - 7}, which has no account"):
        unprivileged.as_unprivileged(Launch(["postgres"]), owned=[])


def test_end_spares_a_process_that_left_in_time_and_kills_one_that_ignores_the_signal() -> None:
    ignores = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", ignores], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == b"on\n"
        end([psutil.Process(stubborn.pid)], grace_s=0.2)
        assert stubborn.wait(1) == -signal.SIGKILL
