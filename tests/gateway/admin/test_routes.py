"""Who answers: a switch needs evidence, a rollback needs none, and other projects' routes are out of reach."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy.orm import Session

from gateway.admin.openapi import document
from gateway.core.db import session_scope
from tests import seeded
from tests.e2e.world import World, build


@pytest.fixture
def world(session: Session) -> World:
    made = build(session, calls=8)
    session.commit()
    return made


async def route_now(api: httpx.AsyncClient, world: World) -> dict[str, Any]:
    listed = (await api.get(f"/api/projects/{world.project.id}/routes")).json()
    return next(route for route in listed if route["id"] == str(world.route.id))


async def test_a_switch_and_back(api: httpx.AsyncClient, world: World) -> None:
    path = f"/api/projects/{world.project.id}/routes/{world.route.id}"
    live = {
        "stage": "live",
        "share": 1,
        "student_id": str(world.student.id),
        "evaluation_id": str(world.student.evaluation_id),
        "reason": "the evidence suffices",
    }
    bare = await api.post(f"{path}/revisions", json=live | {"evaluation_id": None})
    assert (bare.status_code, bare.json()["error"]["code"]) == (409, "evidence_missing")
    assert (await route_now(api, world))["revision"]["number"] == 1

    made = await api.post(f"{path}/revisions", json=live)
    assert (made.status_code, made.json()) == (201, {"number": 2})
    revision = (await route_now(api, world))["revision"]
    assert (revision["stage"], revision["share"], revision["student"]["name"]) == ("live", 1, "support-triage-v1")

    assert (await api.post(f"{path}/rollback")).json() == {"number": 3}
    assert (await route_now(api, world))["revision"]["stage"] == "observe"
    history = (await api.get(f"{path}/revisions")).json()
    assert [(row["number"], row["stage"]) for row in history] == [(3, "observe"), (2, "live"), (1, "observe")]
    nothing = await api.post(f"/api/projects/{world.project.id}/routes/{world.student.id}/rollback")
    assert nothing.status_code == 404


async def test_a_route_is_made_once(api: httpx.AsyncClient, world: World) -> None:
    path = f"/api/projects/{world.project.id}/routes"
    body = {"alias": "mini", "upstream_id": str(world.upstream.id), "upstream_model": "gpt-mini"}
    made = await api.post(path, json=body)
    assert (made.status_code, made.json()["revision"]) == (201, 1)
    assert (await api.post(path, json=body)).json()["error"]["code"] == "route_exists"
    assert (await api.post(path, json=body | {"upstream_id": str(world.student.id)})).status_code == 404


async def test_fallbacks_are_set_in_order(api: httpx.AsyncClient, world: World) -> None:
    project = f"/api/projects/{world.project.id}"
    new = {"name": "spare", "base_url": "http://spare/v1"}
    spare = (await api.post(f"{project}/upstreams", json=new)).json()["id"]
    asked = [
        {"upstream_id": spare, "upstream_model": "claude"},
        {"upstream_id": str(world.upstream.id), "upstream_model": "gpt-mini"},
        {"upstream_id": spare, "upstream_model": None},
    ]
    path = f"{project}/routes/{world.route.id}/fallbacks"
    assert (await api.put(path, json={"fallbacks": asked})).status_code == 204
    shown = (await route_now(api, world))["fallbacks"]
    assert [(f["upstream"]["id"], f["upstream_model"]) for f in shown] == [tuple(each.values()) for each in asked]
    assert (await api.put(path, json={"fallbacks": asked[::-1][:1]})).status_code == 204
    assert [f["upstream"]["name"] for f in (await route_now(api, world))["fallbacks"]] == ["spare"]

    twice = await api.put(path, json={"fallbacks": [asked[0], asked[0]]})
    assert (twice.status_code, twice.json()["error"]["code"]) == (422, "fallback_repeated")
    itself = await api.put(path, json={"fallbacks": [{"upstream_id": str(world.upstream.id)}]})
    assert itself.json()["error"]["code"] == "fallback_repeated", "the route asks it first already"
    unknown = await api.put(path, json={"fallbacks": [{"upstream_id": str(world.student.id)}]})
    assert unknown.status_code == 404
    assert len((await route_now(api, world))["fallbacks"]) == 1

    made = {"alias": "mini", "upstream_id": str(world.upstream.id), "fallbacks": asked[:1]}
    assert (await api.post(f"{project}/routes", json=made)).status_code == 201
    assert (await api.put(path, json={"fallbacks": []})).status_code == 204
    assert (await route_now(api, world))["fallbacks"] == []


async def test_students_with_their_engine(api: httpx.AsyncClient, world: World) -> None:
    students = (await api.get(f"/api/projects/{world.project.id}/students")).json()
    assert [(row["name"], row["deployment"]["state"]) for row in students] == [("support-triage-v1", "ready")]
    deployment = students[0]["deployment"]["id"]
    found = await api.get(f"/api/projects/{world.project.id}/deployments/{deployment}")
    assert found.json()["state"] == "ready"


async def test_a_student_is_loaded_and_unloaded(api: httpx.AsyncClient, world: World) -> None:
    student = f"/api/projects/{world.project.id}/students/{world.student.id}"
    unloaded = await api.post(f"{student}/unload")
    assert (unloaded.status_code, unloaded.json()["wanted"]) == (200, False)
    loaded = (await api.post(f"{student}/load")).json()
    assert (loaded["wanted"], loaded["state"], loaded["base_url"]) == (True, "requested", None)


async def test_no_row_of_another_project_is_reached(api: httpx.AsyncClient, world: World) -> None:
    """Every route that names a row, asked for it under another project: 404, whatever the method."""
    with session_scope() as later:
        stranger = seeded.project(later, "stranger")
    students = (await api.get(f"/api/projects/{world.project.id}/students")).json()
    keys = (await api.get(f"/api/projects/{world.project.id}/keys")).json()
    ids = {
        "project_id": stranger.id,
        "key_id": keys[0]["id"],
        "upstream_id": world.upstream.id,
        "call_id": world.calls[0].id,
        "task_id": world.task.id,
        "run_id": world.finished_run,
        "evaluation_id": world.student.evaluation_id,
        "route_id": world.route.id,
        "student_id": world.student.id,
        "deployment_id": students[0]["deployment"]["id"],
    }
    bodies: dict[str, dict[str, Any]] = {
        "external": {"name": "x", "candidate": "grpo", "results": {str(world.student.id): True}},
        "revisions": {"stage": "observe", "share": 0, "reason": "x"},
        "runs": {"config": {}},
        "fallbacks": {"fallbacks": []},
    }
    asked = 0
    for template, operations in document()["paths"].items():
        if template.count("{") < 2:
            continue
        for method in operations:
            body = bodies.get(template.rsplit("/", 1)[-1], {}) if method in ("post", "put", "patch") else None
            response = await api.request(method, template.format(**ids), json=body)
            assert response.status_code == 404, f"{method} {template}: {response.status_code} {response.text[:200]}"
            asked += 1
    assert asked > 15
    assert (await route_now(api, world))["revision"]["number"] == 1


async def test_what_may_be_kept_of_a_routes_calls(api: httpx.AsyncClient, world: World) -> None:
    path = f"/api/projects/{world.project.id}/routes/{world.route.id}"
    assert (await api.patch(path, json={"capture": "metadata", "sample": 0.5, "retention_days": 7})).status_code == 204
    assert (await api.patch(path, json={"retention_days": None})).status_code == 204
    shown = await route_now(api, world)
    assert (shown["capture"], shown["sample"], shown["retention_days"]) == ("metadata", 0.5, None)
    assert (await api.patch(path, json={"capture": "some"})).status_code == 400
    assert (await api.patch(path.replace(str(world.route.id), str(world.student.id)), json={})).status_code == 404
