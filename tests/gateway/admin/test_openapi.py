"""The document that the dashboard's client is generated from: made without a database, and the one checked in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from gateway.admin.openapi import document

WEB = Path(__file__).parents[3] / "web"
OPEN = {("get", "/api/session"), ("post", "/api/session"), ("delete", "/api/session")}


def test_the_checked_in_document_is_the_api() -> None:
    written = json.loads((WEB / "openapi.json").read_text())
    assert written == document(), "run: python -m gateway.admin.openapi > web/openapi.json"


def test_it_needs_neither_database_nor_home() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("STEPDOWN", "DATABASE"))}
    done = subprocess.run(
        [sys.executable, "-m", "gateway.admin.openapi"],
        capture_output=True,
        check=True,
        env=environment | {"STEPDOWN_HOME": "/nonexistent/home"},
    )
    assert json.loads(done.stdout)["paths"]


def test_every_operation_but_the_session_is_guarded() -> None:
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            guarded = bool(operation.get("security"))
            assert guarded == ((method, path) not in OPEN), f"{method} {path}"


def test_every_operation_says_how_it_answers() -> None:
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            good = next(answer for code, answer in operation["responses"].items() if code.startswith("2"))
            schemas = [media.get("schema") for media in good.get("content", {}).values()]
            assert all(schema != {} for schema in schemas), f"{method} {path} has no response model"
            assert "ErrorBody" in json.dumps(operation["responses"]["4XX"])
