"""Engines follow their rows: wanted ones run, unwanted ones end, hopeless ones are marked failed with the reason."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from gateway.core.db import session_scope
from gateway.models import Deployment, Project, Student, Task
from gateway.supervisor import bootstrap, repository
from gateway.supervisor.child import Child
from gateway.supervisor.deployments import Deployments, Watch
from gateway.supervisor.service import Policy
from tests.gateway.supervisor.harness import eventually

# Stands for `python -m distill.serving ID --port P`: marks its row ready, then runs until told to stop.
ENGINE = """
import sys, time, uuid
from sqlalchemy import update
from gateway.core.db import session_scope
from gateway.models import Deployment
url = f"http://127.0.0.1:{sys.argv[3]}/v1"
with session_scope() as session:
    mine = update(Deployment).where(Deployment.id == uuid.UUID(sys.argv[1]))
    session.execute(mine.values(state="ready", base_url=url))
time.sleep(600)
"""
HOPELESS = "import sys; sys.exit('no such model')"


def deployment(**values: object) -> uuid.UUID:
    with session_scope() as session:
        project = Project(name=f"shop {uuid.uuid4()}")
        session.add(project)
        session.flush()
        task = Task(project_id=project.id, slug="triage", name="Triage")
        session.add(task)
        session.flush()
        student = Student(
            project_id=project.id,
            task_id=task.id,
            run_id=uuid.uuid4(),
            checkpoint_id=uuid.uuid4(),
            evaluation_id=uuid.uuid4(),
            name="triage-v1",
            path="x",
            manifest={},
        )
        session.add(student)
        session.flush()
        row = Deployment(project_id=project.id, student_id=student.id, **values)
        session.add(row)
        session.flush()
        return row.id


def read(row_id: uuid.UUID) -> Deployment:
    with session_scope() as session:
        row = session.get(Deployment, row_id)
        assert row is not None
        return row


def change(row_id: uuid.UUID, **values: object) -> None:
    with session_scope() as session:
        row = session.get(Deployment, row_id)
        for name, value in values.items():
            setattr(row, name, value)


@contextmanager
def following(
    home: Path, program: str, policy: Policy | None = None
) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Deployments under test; yields a wait that keeps ticking until its condition holds."""

    def adopt(service: object, policy: Policy) -> Child:
        return Child(service, policy, home / "logs", os.environ)  # type: ignore[arg-type]

    quick = policy or Policy(give_up="always", quick_s=60, first_delay_s=0.3, deaths=2)
    deployments = Deployments(adopt, Watch(every_s=0.05), quick, [sys.executable, "-c", program])

    def until(condition: Callable[[], object]) -> None:
        def check() -> object:
            deployments.tick()
            return condition()

        eventually(check)

    try:
        yield until
    finally:
        deployments.stop(grace_s=1)
        deadline = time.monotonic() + 10
        while not all(child.settled for child in deployments.children.values()) and time.monotonic() < deadline:
            for child in deployments.children.values():
                child.tick()
        deployments.close()


def engines(row_id: uuid.UUID) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if str(row_id) in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_a_wanted_deployment_runs_survives_a_kill_and_stops_when_unwanted(database: str, home: Path) -> None:
    row_id = deployment()
    with following(home, ENGINE) as until:
        until(lambda: read(row_id).state == "ready")
        first = read(row_id).base_url
        [engine] = engines(row_id)
        engine.kill()
        until(lambda: read(row_id).state != "ready")
        assert read(row_id).base_url is None
        until(lambda: read(row_id).state == "ready")
        assert read(row_id).base_url != first
        change(row_id, wanted=False)
        until(lambda: read(row_id).state == "stopped")
        assert read(row_id).base_url is None
        assert engines(row_id) == []


def test_an_engine_that_keeps_dying_is_marked_failed_with_its_reason(database: str, home: Path) -> None:
    row_id = deployment()
    with following(home, HOPELESS) as until:
        until(lambda: read(row_id).state == "failed")
        error = read(row_id).error
        assert error is not None
        assert "died 2 times in a row: exit 1: no such model" in error
        change(row_id, state="requested")  # what a person does to try again
        until(lambda: engines(row_id) or read(row_id).state == "failed")
        until(lambda: read(row_id).state == "failed")


def test_an_engine_that_gave_its_own_verdict_is_not_started_again(database: str, home: Path) -> None:
    row_id = deployment()
    verdict = ENGINE.replace('state="ready", base_url=url', 'state="failed", error="the smoke request failed"').replace(
        "time.sleep(600)", f"open({str(home / 'starts')!r}, 'a').write('+'); sys.exit(1)"
    )
    with following(home, verdict, Policy(give_up="always", first_delay_s=0.5)) as until:
        until((home / "starts").exists)
        settled = time.monotonic() + 1.2
        until(lambda: time.monotonic() > settled)
        assert (home / "starts").read_text() == "+"
        assert read(row_id).error == "the smoke request failed"


def test_the_end_of_the_supervisor_leaves_no_row_pointing_at_an_engine(database: str, home: Path) -> None:
    row_id = deployment()
    with following(home, ENGINE) as until:
        until(lambda: read(row_id).state == "ready")
    assert (read(row_id).state, read(row_id).base_url, read(row_id).wanted) == ("requested", None, True)


def test_notes_wait_for_a_database_that_is_away(database: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row_id = deployment(state="starting")
    watch = Watch(every_s=0.05)
    refused = []

    def broken(session: object) -> list[repository.Wanted]:
        refused.append(1)
        raise OSError("away")

    with monkeypatch.context() as away:
        away.setattr(repository, "wanted", broken)
        watch.note(partial(repository.mark_failed, deployment_id=row_id, error="why"))
        watch.start()
        eventually(lambda: len(refused) >= 2)
        assert read(row_id).state == "starting"
    eventually(lambda: read(row_id).state == "failed")
    watch.close()


def test_bootstrap_makes_the_first_project_only_and_forgets_old_engines(database: str, home: Path) -> None:
    from sqlalchemy import select

    def names() -> list[str]:
        with session_scope() as session:
            return list(session.scalars(select(Project.name)))

    assert bootstrap.main() == 0
    assert bootstrap.main() == 0
    assert names() == ["default"]
    row_id = deployment(state="ready", base_url="http://127.0.0.1:9/v1")
    failed = deployment(state="failed", error="why")
    assert bootstrap.main() == 0
    assert (read(row_id).state, read(row_id).base_url) == ("requested", None)
    assert read(failed).state == "failed"
    assert len(names()) == 3
