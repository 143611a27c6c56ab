"""Who gets in: token and cookie, and what a page on another site or a rebound name can do: nothing."""

from __future__ import annotations

import httpx
import pytest

from gateway.admin import session as sessions
from gateway.admin.guard import COOKIE
from gateway.admin.session import admin_token, is_session, new_session
from gateway.core.settings import settings

ORIGIN = {"origin": "http://127.0.0.1:8787"}


def error_of(response: httpx.Response) -> str:
    body = response.json()["error"]
    assert set(body) == {"message", "type", "param", "code"}
    return str(body["code"])


async def sign_in(client: httpx.AsyncClient) -> None:
    response = await client.post("/api/session", json={"token": admin_token()}, headers=ORIGIN)
    assert response.status_code == 204


async def test_a_stranger_is_refused(stranger: httpx.AsyncClient) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": f"{COOKIE}=forged"}):
        response = await stranger.get("/api/projects", headers=headers)
        assert response.status_code == 401
        assert error_of(response) == "admin_token_required"
        assert response.json()["error"]["type"] == "authentication_error"


async def test_a_wrong_token_makes_no_session(stranger: httpx.AsyncClient) -> None:
    response = await stranger.post("/api/session", json={"token": "sd-wrong"}, headers=ORIGIN)
    assert response.status_code == 401
    assert error_of(response) == "admin_token_wrong"
    assert "set-cookie" not in response.headers
    assert admin_token() not in response.text


async def test_the_cookie_opens_the_api_and_is_out_of_scripts_reach(stranger: httpx.AsyncClient) -> None:
    response = await stranger.post("/api/session", json={"token": admin_token()}, headers=ORIGIN)
    flags = {part.strip().lower() for part in response.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert (await stranger.get("/api/session")).json() == {"signed_in": True}
    me = (await stranger.get("/api/me")).json()
    assert me["via"] == "session"
    assert me["base_url"] == "http://127.0.0.1:8787/v1"


async def test_signing_out_forgets_the_cookie(stranger: httpx.AsyncClient) -> None:
    await sign_in(stranger)
    assert (await stranger.delete("/api/session", headers=ORIGIN)).status_code == 204
    assert (await stranger.get("/api/session")).json() == {"signed_in": False}
    assert (await stranger.get("/api/projects")).status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9999", "null", None])
async def test_a_cookie_write_from_elsewhere_is_refused(stranger: httpx.AsyncClient, origin: str | None) -> None:
    await sign_in(stranger)
    headers = {"origin": origin} if origin else {}
    response = await stranger.post("/api/projects", json={"name": "theirs"}, headers=headers)
    assert response.status_code == 403
    assert error_of(response) == "origin_not_allowed"
    assert (await stranger.get("/api/projects")).json() == []


async def test_a_cookie_write_from_our_page_works(stranger: httpx.AsyncClient) -> None:
    await sign_in(stranger)
    assert (await stranger.post("/api/projects", json={"name": "ours"}, headers=ORIGIN)).status_code == 201


async def test_signing_in_from_elsewhere_is_refused(stranger: httpx.AsyncClient) -> None:
    headers = {"origin": "https://evil.example"}
    response = await stranger.post("/api/session", json={"token": admin_token()}, headers=headers)
    assert response.status_code == 403


async def test_a_script_needs_no_origin(api: httpx.AsyncClient) -> None:
    assert (await api.post("/api/projects", json={"name": "scripted"})).status_code == 201


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8787", "stepdown.local"])
async def test_a_rebound_name_is_refused(api: httpx.AsyncClient, host: str) -> None:
    response = await api.get("/api/projects", headers={"host": host})
    assert response.status_code == 421
    assert error_of(response) == "host_not_allowed"


async def test_a_further_name_can_be_allowed(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPDOWN_ALLOWED_HOSTS", "stepdown.local, other")
    settings.cache_clear()
    assert (await api.get("/api/projects", headers={"host": "stepdown.local:80"})).status_code == 200
    assert (await api.get("/api/projects", headers={"host": "localhost:1"})).status_code == 200


def test_a_new_admin_token_ends_every_session(home: object) -> None:
    cookie = new_session()
    assert is_session(cookie)
    (settings().secrets_dir / "admin.token").write_text("another")
    assert not is_session(cookie)


def test_keys_rotate_and_old_sessions_live_on_until_they_expire(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = sessions.time.time()
    monkeypatch.setattr(sessions.time, "time", lambda: clock)
    old = new_session()
    keys = settings().secrets_dir / "session.keys"
    first = keys.read_text()
    assert keys.stat().st_mode & 0o777 == 0o600

    clock += 2 * 24 * 3600
    new = new_session()
    assert keys.read_text() != first
    assert is_session(old)
    assert is_session(new)

    clock += sessions.SESSION_S - 24 * 3600
    assert not is_session(old), "it is older than a session lasts"
    assert is_session(new)


async def test_bad_input_has_openais_error_shape(api: httpx.AsyncClient) -> None:
    wrong = await api.post("/api/projects", json={"name": "x", "colour": "red"})
    assert (wrong.status_code, error_of(wrong), wrong.json()["error"]["param"]) == (400, "invalid_value", "colour")
    broken = await api.post("/api/projects", content=b"{", headers={"content-type": "application/json"})
    assert broken.status_code == 400
    unknown = await api.get("/api/nothing/here")
    assert (unknown.status_code, error_of(unknown)) == (404, "path_unknown")
    missing = await api.get("/api/projects/00000000-0000-7000-8000-000000000000/keys")
    assert (missing.status_code, error_of(missing)) == (404, "project_not_found")


async def test_a_database_that_is_down_is_said_so(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/none")
    settings.cache_clear()
    response = await api.get("/api/projects")
    assert (response.status_code, error_of(response)) == (503, "database_unavailable")


async def test_answers_are_not_cached(api: httpx.AsyncClient) -> None:
    assert (await api.get("/api/projects")).headers["cache-control"] == "no-store"
