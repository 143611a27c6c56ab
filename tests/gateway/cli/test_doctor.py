"""`stepdown doctor` finds what is wrong, names the value, and says what to do about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from sqlalchemy import delete, update

from gateway.capture.status import Note
from gateway.cli.doctor import examine
from gateway.core.db import session_scope
from gateway.core.ports import free_port
from gateway.core.settings import settings
from gateway.models import ApiKey, Deployment, Project, Route, Upstream
from tests.gateway.world import UPSTREAM_KEY, MockUpstream, Reply, add_student, seed


class Doctor:
    """What the doctor says."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def findings(self, check: str) -> list[tuple[str, str, str]]:
        settings.cache_clear()
        self._capsys.readouterr()
        code = examine(as_json=True)
        self.text = self._capsys.readouterr().out
        told: dict[str, Any] = json.loads(self.text)
        wrong = any(f["state"] == "wrong" for f in told["findings"])
        assert (told["ok"], code) == (not wrong, int(wrong))
        assert all(f["do"] for f in told["findings"] if f["state"] != "ok")
        return [(f["state"], f["what"], f["do"]) for f in told["findings"] if f["check"] == check]

    def one(self, check: str) -> tuple[str, str, str]:
        [finding] = self.findings(check)
        return finding


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(capsys)


@pytest.mark.parametrize(
    ("status", "state", "do"),
    [
        (200, "ok", ""),
        (401, "wrong", "refuses the credential"),
        (503, "wrong", "does not serve now"),
        (404, "note", "can be reached"),
    ],
)
def test_an_upstream_is_asked_with_its_credential(
    doctor: Doctor, database: str, upstream: MockUpstream, status: int, state: str, do: str
) -> None:
    seed(upstream.base_url)
    upstream.reply = Reply([b"{}"], status=status)
    found = doctor.one("upstream")
    assert found[0] == state
    assert f"upstream shop-frontier (shop) answers {status} at {upstream.base_url}/models" in found[1]
    assert do in found[2]
    [seen] = upstream.seen
    assert seen.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    assert UPSTREAM_KEY not in doctor.text


def test_an_upstream_for_pass_through_needs_no_credential_and_its_project_no_route(
    doctor: Doctor, database: str, upstream: MockUpstream
) -> None:
    rows = seed(upstream.base_url, credential=None)
    upstream.reply = Reply([b"{}"], status=401)
    with session_scope() as session:
        session.execute(delete(Route))
    assert "has no route" in doctor.one("project")[1]
    with session_scope() as session:
        session.execute(update(ApiKey).values(upstream_id=rows.upstream_id))
    assert doctor.findings("project") == []
    state, _, do = doctor.one("upstream")
    assert (state, "bring their own" in do) == ("note", True)


def test_other_wires_have_other_addresses_and_headers(doctor: Doctor, database: str, upstream: MockUpstream) -> None:
    base = upstream.base_url.removesuffix("/v1")
    seed(f"{base}?api-version=1", kind="azure", name="a")
    seed(f"{base}/v1", kind="anthropic", name="b")
    seed("", kind="litellm", name="c", alias="x")
    states = [state for state, _, _ in doctor.findings("upstream")]
    assert states == ["ok", "ok", "note"]
    by_path = {seen.path: seen for seen in upstream.seen}
    assert (by_path["/openai/models"].query, by_path["/openai/models"].header("api-key")) == (
        "api-version=1", UPSTREAM_KEY,
    )  # fmt: skip
    assert by_path["/v1/models"].header("x-api-key") == UPSTREAM_KEY


def test_an_upstream_that_is_not_there_or_speaks_no_tls(doctor: Doctor, database: str, upstream: MockUpstream) -> None:
    seed(f"http://127.0.0.1:{free_port()}/v1", name="away")
    seed(upstream.base_url.replace("http:", "https:"), name="plain")
    (away, plain) = doctor.findings("upstream")
    assert away[0] == plain[0] == "wrong"
    assert "refused" in away[1]
    assert "SSL" in plain[1]
    assert "base URL" in away[2]


def test_a_credential_under_another_key_and_a_key_for_all_to_read(
    doctor: Doctor, database: str, upstream: MockUpstream
) -> None:
    rows = seed(upstream.base_url)
    path = settings().secrets_dir / "master.key"
    assert "opens all 1" in doctor.one("master_key")[1]
    old = path.read_text()
    path.write_text("another")
    path.chmod(0o644)
    state, what, do = doctor.one("credential")
    assert (state, "shop-frontier (shop)" in what, "put the old key back" in do) == ("wrong", True, True)
    assert "mode 0644" in doctor.one("master_key")[1]
    path.write_text(old)
    path.unlink()
    assert "is gone" in doctor.one("master_key")[1]
    assert not path.exists(), "the doctor changes nothing"
    with session_scope() as session:
        session.execute(update(Upstream).where(Upstream.id == rows.upstream_id).values(credential=None))
    assert doctor.findings("master_key") == []


def test_a_route_to_a_student_that_is_not_loaded(doctor: Doctor, database: str, upstream: MockUpstream) -> None:
    rows = seed(upstream.base_url)
    name = add_student(rows, upstream.base_url)
    assert doctor.one("route")[0] == "ok"
    with session_scope() as session:
        session.execute(update(Deployment).values(wanted=False, state="stopped"))
    state, what, do = doctor.one("route")
    assert (state, what) == ("wrong", f"route gpt-4o (shop) names student {name}, which is unloaded")
    assert "roll the route back" in do


def test_projects_that_nobody_can_call(doctor: Doctor, database: str, upstream: MockUpstream) -> None:
    seed(upstream.base_url)
    with session_scope() as session:
        session.execute(update(ApiKey).values(revoked_at="2026-01-01"))
        session.add(Project(name="empty"))
    found = [(what, do) for _, what, do in doctor.findings("project")]
    assert [what.partition(":")[0] for what, _ in found] == [
        "project empty has no key", "project empty has no route", "project shop has no key",
    ]  # fmt: skip
    assert "stepdown keys create --project shop" in found[2][1]


def test_a_schema_that_is_behind(doctor: Doctor, database: str) -> None:
    assert doctor.one("schema")[0] == "ok"
    with psycopg.connect(database, autocommit=True) as connection:
        [(newest,)] = connection.execute("select version_num from alembic_version").fetchall()
        connection.execute("update alembic_version set version_num = '0001'")
        try:
            state, what, do = doctor.one("schema")
        finally:
            connection.execute("update alembic_version set version_num = %s", [newest])
    assert (state, do) == ("wrong", "`stepdown db migrate`")
    assert f"is 0001, ours {newest}" in what


def test_a_database_and_a_broker_that_do_not_answer(
    doctor: Doctor, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgresql://u:hidden@127.0.0.1:{free_port()}/x")
    monkeypatch.setenv("REDIS_URL", f"redis://:hidden@127.0.0.1:{free_port()}/0")
    assert doctor.one("database")[::2] == ("wrong", "start it, or correct DATABASE_URL")
    assert doctor.one("redis")[0] == "wrong"
    assert "hidden" not in doctor.text


def test_a_broker_that_answers(doctor: Doctor, broker: str) -> None:
    assert doctor.one("redis")[0] == "ok"
    assert doctor.one("database")[0] == "note", "nothing runs here"


def test_the_writer_and_what_waits_for_it(doctor: Doctor, home: Path) -> None:
    assert doctor.findings("writer") == []
    spool = settings().spool_dir
    spool.mkdir()

    def note(waiting: int, failure: str | None, at: float) -> None:
        (spool / "writer.json").write_bytes(msgspec.json.encode(Note(at, waiting, 0, 0, failure)))

    note(1_000_000, None, time.time())
    assert doctor.one("writer")[:2] == ("ok", "the writer runs; 1.0 MB of captured calls wait")
    note(300_000_000, None, time.time())
    assert "calls come faster" in doctor.one("writer")[2]
    note(5_000_000, "no such database", time.time())
    assert "cannot store: no such database; 5.0 MB" in doctor.one("writer")[1]
    note(0, None, time.time() - 60)
    (spool / "a.spool").write_bytes(b"x")
    (spool / "rejected").mkdir()
    (spool / "rejected" / "a-0.record").touch()
    assert "does not run; 1 segments" in doctor.one("writer")[1]
    assert "1 captured calls could not be stored" in doctor.one("rejected")[1]


def test_too_few_open_files(home: Path) -> None:
    script = f"ulimit -n 512; exec {sys.executable} -m gateway.cli doctor"
    found = subprocess.run(["bash", "-c", script], env=os.environ, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    [line] = [line for line in found.stdout.splitlines() if "open files" in line]
    assert line.startswith("NO  limit of 512 open files")
    assert "ulimit -n" in line
