"""The admin API keeps to its OpenAPI document whatever it is asked: no fault, no answer in a shape it does not name.

schemathesis generates the questions, in a process and an environment of its own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gateway.admin.session import admin_token
from gateway.core.db import session_scope
from gateway.models import Route
from tests import seeded
from tests.gateway.world import World

SCHEMATHESIS = Path(__file__).parents[3] / ".venv/clients/bin/schemathesis"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,ignored_auth,missing_required_header"
)


def ids(world: World) -> dict[str, object]:
    """Rows that the questions are about, by their name in a path."""
    with session_scope() as session:
        owner = seeded.project(session)
        judge = seeded.upstream(session, owner)
        task = seeded.task(session, owner)
        call = seeded.call(session, task, judge, "hi", "billing")
        run = seeded.run(session, task, judge)
        route = Route(project_id=owner.id, alias="gpt-4o", upstream_id=judge.id)
        session.add(route)
        session.flush()
        return {
            "project_id": owner.id, "upstream_id": judge.id, "task_id": task.id, "call_id": call.id, "run_id": run.id,
            "route_id": route.id,
        }  # fmt: skip


def test_the_admin_api_keeps_to_its_document(broker: str, world: World, tmp_path: Path) -> None:
    config = tmp_path / "schemathesis.toml"
    rows = "".join(f'"path.{name}" = "{id}"\n' for name, id in ids(world).items())
    config.write_text(f"[parameters]\n{rows}[phases.coverage]\nunexpected-methods = []\n")
    command = [
        str(SCHEMATHESIS), "--config-file", str(config), "run", f"{world.url}/api/openapi.json",
        "--header", f"Authorization: Bearer {admin_token()}", "--checks", CHECKS, "--seed", "1", "--max-examples", "8",
        "--phases", "coverage,fuzzing", "--exclude-path-regex", "stream$", "--no-color", "--no-shrink",
        "--suppress-health-check", "all", "--request-timeout", "10", "--warnings", "off", "--continue-on-failure",
    ]  # fmt: skip
    assert SCHEMATHESIS.exists(), f"{SCHEMATHESIS} is not there: `make test` installs it"
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
