"""Stepdown's HTTP API as the demo uses it: every call in one place.

Owns addresses and shapes, no decisions. A read is repeated while the gateway is away; a write never is, because it
may have happened.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

Json = dict[str, Any]
PATIENCE_S = 90.0


class ApiError(Exception):
    """The API's refusal, in its own words."""

    def __init__(self, status: int, code: str | None, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def admin_token(home: Path) -> str | None:
    """STEPDOWN_ADMIN_TOKEN, else the token that `stepdown up` wrote down; None before its first start."""
    try:
        return os.environ.get("STEPDOWN_ADMIN_TOKEN") or (home / "secrets" / "admin.token").read_text().strip()
    except FileNotFoundError:
        return None


class Api:
    """The admin API of one installation, and of the project whose id is in `project` (`create_project` sets it)."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        # Stepdown is on this machine: a proxy that the environment names has no part in it.
        headers = {"authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{self.url}/api", headers=headers, timeout=60, trust_env=False)
        self.project = ""

    def close(self) -> None:
        self._http.close()

    def me(self) -> Json:
        return self._get("/me")

    def ready(self) -> bool:
        """Whether the gateway answers calls now. Never raises."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def create_project(self, name: str) -> str:
        self.project = str(self._post("/projects", {"name": name})["id"])
        return self.project

    def projects(self) -> list[Json]:
        return self._list("/projects")

    def create_key(self, name: str) -> str:
        return str(self._post(self._p("/keys"), {"name": name})["key"])

    def create_upstream(self, upstream: Mapping[str, Any]) -> str:
        return str(self._post(self._p("/upstreams"), upstream)["id"])

    def create_route(self, alias: str, upstream_id: str, upstream_model: str, task_id: str | None = None) -> Json:
        body = {"alias": alias, "upstream_id": upstream_id, "upstream_model": upstream_model, "task_id": task_id}
        return self._post(self._p("/routes"), body)

    def routes(self) -> list[Json]:
        """Every route as it stands, with the revision in force."""
        return self._list(self._p("/routes"))

    def route(self, route_id: str) -> Json:
        return next(route for route in self.routes() if route["id"] == route_id)

    def tasks(self) -> list[Json]:
        return self._list(self._p("/tasks"))

    def start_run(self, task_id: str, config: Mapping[str, Any], judge_upstream_id: str, bars: Sequence[Json]) -> str:
        body = {"config": dict(config), "judge_upstream_id": judge_upstream_id, "bars": list(bars)}
        return str(self._post(self._p(f"/tasks/{task_id}/runs"), body)["id"])

    def run(self, run_id: str) -> Json:
        return self._get(self._p(f"/runs/{run_id}"))

    def cancel(self, run_id: str) -> None:
        self._post(self._p(f"/runs/{run_id}/cancel"), {})

    def steps(self, run_id: str) -> list[Json]:
        return self._list(self._p(f"/runs/{run_id}/steps"))

    def events(self, run_id: str) -> list[Json]:
        return self._list(self._p(f"/runs/{run_id}/events"))

    def evaluation(self, run_id: str) -> Json:
        return self._get(self._p(f"/runs/{run_id}/evaluation"))

    def outputs(self, evaluation_id: str, candidate: str) -> list[Json]:
        """Every answer of a candidate: `row`, `input` (messages), `output`, `reference`."""
        path = self._p(f"/evaluations/{evaluation_id}/outputs")
        return self._list(path, candidate=candidate, limit=5000)

    def post_external(self, evaluation_id: str, name: str, candidate: str, results: Mapping[str, bool]) -> Json:
        body = {"name": name, "candidate": candidate, "results": dict(results)}
        return self._post(self._p(f"/evaluations/{evaluation_id}/external"), body)

    def release(self, evaluation_id: str) -> Json:
        """The student and its deployment. Raises ApiError 409 below the bars."""
        return self._post(self._p(f"/evaluations/{evaluation_id}/release"), {})

    def deployment(self, deployment_id: str) -> Json:
        return self._get(self._p(f"/deployments/{deployment_id}"))

    def students(self) -> list[Json]:
        """Released students, each with its latest deployment."""
        return self._list(self._p("/students"))

    def unload(self, student_id: str) -> None:
        self._post(self._p(f"/students/{student_id}/unload"), {})

    def revise(self, route_id: str, revision: Mapping[str, Any]) -> int:
        return int(self._post(self._p(f"/routes/{route_id}/revisions"), revision)["number"])

    def usage(self) -> Json:
        return self._get(self._p("/usage"))

    def _p(self, path: str) -> str:
        return f"/projects/{self.project}{path}"

    def _get(self, path: str) -> Json:
        answer: Json = self._read(path)
        return answer

    def _list(self, path: str, **query: Any) -> list[Json]:
        answer: list[Json] = self._read(path, **query)
        return answer

    def _read(self, path: str, **query: Any) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                response = self._http.get(path, params=query)
                if response.status_code not in (502, 503, 504) or time.monotonic() > deadline:
                    return _checked(response)
            except httpx.TransportError as error:
                if time.monotonic() > deadline:
                    raise ApiError(
                        0, "unreachable", f"{self.url} has not answered for {PATIENCE_S:.0f} s: {error}"
                    ) from error
            time.sleep(0.5)

    def _post(self, path: str, body: Mapping[str, Any]) -> Json:
        try:
            answer: Json = _checked(self._http.post(path, json=body))
        except httpx.TransportError as error:
            raise ApiError(0, "unreachable", f"{self.url} went away during POST {path}: {error}") from error
        return answer


def _checked(response: httpx.Response) -> Any:
    if response.is_success:
        return response.json() if response.content else {}
    try:
        error = response.json()["error"]
        raise ApiError(response.status_code, error.get("code"), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        text = response.text[:300] or response.reason_phrase
        raise ApiError(response.status_code, None, f"{response.request.url} answered {text}") from None
