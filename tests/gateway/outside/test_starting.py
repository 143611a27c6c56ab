"""A gateway answers calls before the control plane is loaded, and the control plane is there for whoever asks."""

from __future__ import annotations

import subprocess
import sys

import httpx
import pytest

from tests.gateway.world import World, request_body

CONTROL = ("fastapi", "celery", "kombu", "alembic", "opentelemetry", "httpx", "litellm", "openai", "email_validator")


def test_what_calls_do_not_need_is_not_loaded_before_they_are_answered() -> None:
    code = f"import sys, gateway.app; gateway.app.create_app(); print([m for m in {CONTROL} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_control_plane_answers_the_first_that_asks(world: World) -> None:
    assert world.client.get("/api/projects").status_code == 401
    assert world.client.get("/no/such/page").status_code in (200, 404)
    assert world.post(request_body()).status_code == 200


@pytest.mark.parametrize(
    ("path", "kind"), [("/healthz", "text/plain"), ("/readyz", "application/json"), ("/metrics", "text/plain")]
)
def test_probes_need_no_control_plane(world: World, path: str, kind: str) -> None:
    answer = world.client.get(path)
    assert answer.headers["content-type"].startswith(kind)
    assert httpx.head(world.url + path).content == b""
    if path == "/readyz":
        assert answer.json()["database"] == "reachable"
