"""Projects, keys and upstreams: what is shown once, what is never shown, what changes when."""

from __future__ import annotations

import httpx
from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.core.db import session_scope
from gateway.core.ids import hash_key
from gateway.core.secretbox import unseal
from gateway.models import ApiKey, Price, Upstream
from tests import seeded

OPENAI = {
    "name": "openai",
    "kind": "openai",
    "base_url": "https://api.example/v1/",
    "model": "frontier-1",
    "api_key": "sk-very-secret",
    "train_on_output": "allowed",
    "judge_with": "unknown",
    "terms_source": "contract",
    "prices": {"input_per_mtok": "2.50", "cached_input_per_mtok": "1.25", "output_per_mtok": "10"},
}


async def project(api: httpx.AsyncClient, name: str = "shop") -> str:
    return str((await api.post("/api/projects", json={"name": name})).json()["id"])


async def test_a_project_name_is_taken_once(api: httpx.AsyncClient) -> None:
    first = await project(api)
    again = await api.post("/api/projects", json={"name": "shop"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "project_exists")
    assert [row["id"] for row in (await api.get("/api/projects")).json()] == [first]


async def test_a_key_is_shown_once_and_revoked(api: httpx.AsyncClient) -> None:
    path = f"/api/projects/{await project(api)}/keys"
    made = (await api.post(path, json={"name": "app"})).json()
    listed = await api.get(path)
    assert made["key"] not in listed.text
    assert listed.json()[0]["prefix"] == made["key"][:8]
    with session_scope() as session:
        assert session.scalars(select(ApiKey.hash)).one() == hash_key(made["key"])

    assert listed.json()[0]["revoked_at"] is None
    assert (await api.delete(f"{path}/{made['id']}")).status_code == 204
    assert (await api.get(path)).json()[0]["revoked_at"] is not None


async def test_how_many_calls_a_key_may_have_under_way(api: httpx.AsyncClient) -> None:
    path = f"/api/projects/{await project(api)}/keys"
    made = (await api.post(path, json={"name": "app", "max_concurrent": 3})).json()
    assert (await api.get(path)).json()[0]["max_concurrent"] == 3
    key = f"{path}/{made['id']}"
    assert (await api.patch(key, json={})).json()["max_concurrent"] == 3
    assert (await api.patch(key, json={"max_concurrent": None})).json()["max_concurrent"] is None
    assert (await api.patch(key, json={"max_concurrent": 0})).status_code == 400
    assert (await api.post(path, json={"name": "app"})).status_code == 201
    assert (await api.get(path)).json()[0]["max_concurrent"] is None


async def test_a_credential_is_sealed_and_never_returned(api: httpx.AsyncClient) -> None:
    path = f"/api/projects/{await project(api)}/upstreams"
    made = await api.post(path, json=OPENAI)
    assert made.status_code == 201
    listed = await api.get(path)
    assert "sk-very-secret" not in made.text + listed.text
    upstream = listed.json()[0]
    assert upstream["has_credential"] is True
    assert upstream["base_url"] == "https://api.example/v1"
    assert upstream["prices"]["input_per_mtok"] == "2.5"
    with session_scope() as session:
        sealed = session.scalars(select(Upstream.credential)).one()
    assert sealed is not None
    assert b"sk-very-secret" not in sealed
    assert unseal(sealed) == "sk-very-secret"


async def test_changing_an_upstream_changes_only_what_is_given(api: httpx.AsyncClient) -> None:
    path = f"/api/projects/{await project(api)}/upstreams"
    made = (await api.post(path, json=OPENAI)).json()["id"]
    prices = {"input_per_mtok": 3, "output_per_mtok": 9}
    changed = await api.patch(f"{path}/{made}", json={"judge_with": "allowed", "prices": prices})
    assert changed.status_code == 200
    upstream = changed.json()
    assert (upstream["judge_with"], upstream["train_on_output"], upstream["model"]) == (
        "allowed",
        "allowed",
        "frontier-1",
    )
    assert (upstream["prices"]["input_per_mtok"], upstream["prices"]["cached_input_per_mtok"]) == ("3", "3")
    with session_scope() as session:
        kept = {str(price) for price in session.scalars(select(Price.input_per_mtok))}
        assert kept == {"2.5000000000", "3.0000000000"}, "earlier calls keep their price"
        sealed = session.scalars(select(Upstream.credential)).one()
    assert sealed is not None
    assert unseal(sealed) == "sk-very-secret"


async def test_what_is_wrong_with_an_upstream_is_said(api: httpx.AsyncClient) -> None:
    path = f"/api/projects/{await project(api)}/upstreams"
    no_address = await api.post(path, json=OPENAI | {"base_url": None})
    assert (no_address.status_code, no_address.json()["error"]["param"]) == (400, "base_url")
    negative = await api.post(path, json=OPENAI | {"prices": {"input_per_mtok": -1, "output_per_mtok": 1}})
    assert (negative.status_code, negative.json()["error"]["param"]) == (400, "prices.input_per_mtok")
    await api.post(path, json=OPENAI)
    assert (await api.post(path, json=OPENAI)).status_code == 409


async def test_another_projects_rows_are_not_reached(api: httpx.AsyncClient, session: Session) -> None:
    theirs = seeded.project(session, "theirs")
    upstream = seeded.upstream(session, theirs)
    session.commit()
    ours = await project(api, "ours")
    changed = await api.patch(f"/api/projects/{ours}/upstreams/{upstream.id}", json={"judge_with": "forbidden"})
    assert changed.status_code == 404
    assert (await api.get(f"/api/projects/{ours}/upstreams")).json() == []


async def test_what_cannot_be_read_or_stored_is_refused_in_our_shape(api: httpx.AsyncClient) -> None:
    path = f"/api/projects/{await project(api)}/keys"
    headers = {"content-type": "application/json"}
    no_text = await api.post(path, content=b"\xff\xfe{", headers=headers)
    too_large = await api.post(path, json={"name": "app", "max_concurrent": 1 << 40})
    with_nul = await api.post("/api/projects", json={"name": "a\0b"})
    for answer, code in ((no_text, "malformed_request"), (too_large, "invalid_value"), (with_nul, "invalid_value")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_keys_of_both_kinds_with_their_rules(api: httpx.AsyncClient, session: Session) -> None:
    project = seeded.project(session)
    upstream = seeded.upstream(session, project)
    session.commit()
    path = f"/api/projects/{project.id}/keys"
    wish = {"name": "app", "upstream_id": str(upstream.id), "sample": 0.1, "redact": [{"name": "email"}]}
    made = await api.post(path, json=wish | {"retention_days": 7})
    assert made.json()["key"].startswith("sdp-")
    (shown,) = (await api.get(path)).json()
    assert (shown["upstream_id"], shown["sample"], shown["redact"]) == (str(upstream.id), 0.1, [{"name": "email"}])
    changed = await api.patch(f"{path}/{shown['id']}", json={"redact": [{"pattern": "x+"}], "capture": "metadata"})
    assert (changed.json()["redact"], changed.json()["retention_days"]) == ([{"pattern": "x+"}], 7)
    wrong = await api.patch(f"{path}/{shown['id']}", json={"redact": [{"pattern": "("}]})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "redaction_rule")
    kept = await api.patch(f"/api/projects/{project.id}", json={"retention_days": 30})
    assert kept.json()["retention_days"] == 30
    assert (await api.patch(f"/api/projects/{project.id}", json={"retention_days": 0})).status_code == 400
