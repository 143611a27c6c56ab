"""Owns the CLI's calls of the HTTP API. Must not read the database."""

from __future__ import annotations

import os
from typing import Any

from gateway.core.errors import StepdownError
from gateway.core.settings import settings
from gateway.supervisor.instance import read_state
from gateway.supervisor.service import address


def base_url() -> str:
    """Where the gateway answers: STEPDOWN_URL, else the running supervisor's address, else host and port."""
    chosen = os.environ.get("STEPDOWN_URL")
    if chosen:
        return chosen.rstrip("/")
    state = read_state(settings().root)
    if state is not None and state.running:
        return state.address
    return address(settings().host, settings().port)


def _token() -> str:
    chosen = os.environ.get("STEPDOWN_ADMIN_TOKEN")
    if chosen:
        return chosen
    file = settings().secrets_dir / "admin.token"
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        raise StepdownError(
            401,
            "no_admin_token",
            f"There is no admin token at {file}.",
            hint="Run `stepdown up` there first, or set STEPDOWN_HOME, or STEPDOWN_URL and STEPDOWN_ADMIN_TOKEN.",
        ) from None


def call(method: str, path: str, body: Any = None) -> Any:
    """One call of the admin API; its JSON, None when it has none. Raises StepdownError with the server's words."""
    import httpx

    url = base_url() + path
    try:
        answer = httpx.request(
            method, url, json=body, headers={"authorization": f"Bearer {_token()}"}, timeout=30, trust_env=False
        )
    except httpx.HTTPError as error:
        raise StepdownError(
            503, "gateway_unreachable", f"{url} does not answer ({error}).", hint="Is it running? `stepdown up`"
        ) from error
    if answer.is_success:
        return answer.json() if answer.content else None
    try:
        message = answer.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = f"{url} answered {answer.status_code}: {answer.text[:200]}"
    raise StepdownError(answer.status_code, "api_error", message)


def project_id(name: str) -> str:
    """The id of the project with this name. Raises StepdownError naming those that exist."""
    projects = call("GET", "/api/projects")
    for project in projects:
        if name in (project["name"], project["id"]):
            return str(project["id"])
    known = ", ".join(project["name"] for project in projects) or "none yet"
    raise StepdownError(404, "project_not_found", f"There is no project {name!r}.", hint=f"Projects: {known}.")
