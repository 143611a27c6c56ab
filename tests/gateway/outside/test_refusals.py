"""Every answer has an id, also where there is no call that it could be the id of; the log knows it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from uuid import UUID

import httpx
import pytest

from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.models import ApiKey
from tests.gateway.world import MockUpstream, World, request_body, running_gateway, seed, until

ID = "x-stepdown-request-id"
CHAT = "/v1/chat/completions"


def lines(caplog: pytest.LogCaptureFixture, id: str) -> list[str]:
    UUID(id)
    return [r.getMessage() for r in caplog.records if str(getattr(r, "call_id", "")) == id]


@pytest.mark.parametrize(
    ("code", "status", "ask"),
    [
        ("api_key_missing", 401, lambda w: httpx.post(f"{w.url}{CHAT}", content=b"{}")),
        ("invalid_api_key", 401, lambda w: w.post(b"{}", authorization="Bearer sd-wrong-and-secret")),
        ("unknown_path", 404, lambda w: w.post(b"{}", "/v1/files/%2e%2e/x")),
        ("method_not_allowed", 405, lambda w: w.client.get(CHAT)),
        ("malformed_json", 400, lambda w: w.post(b'{"my-private-words')),
        ("body_too_large", 413, lambda w: w.post(b'{"a": "' + b"x" * 1_000_000 + b'"}')),
    ],
)
def test_a_refusal_has_the_id_of_its_line_in_the_log(
    code: str, status: int, ask: Callable[[World], httpx.Response], request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch, home: object, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setenv("STEPDOWN_MAX_BODY_MB", "1")
    settings.cache_clear()
    world: World = request.getfixturevalue("world")
    answer = ask(world)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    [line] = lines(caplog, answer.headers[ID])
    assert f"{status} {code}" in line
    assert "secret" not in caplog.text
    assert "private-words" not in caplog.text


def test_a_call_too_many_has_an_id_too(database: str, upstream: MockUpstream, caplog: pytest.LogCaptureFixture) -> None:
    rows = seed(upstream.base_url)
    with session_scope() as session:
        key = session.get(ApiKey, rows.key_id)
        assert key is not None
        key.max_concurrent = 0
    with running_gateway() as (url, app):
        world = World(url, app, upstream, rows)
        answer = world.post(request_body())
        world.client.close()
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert "429 concurrency_limit" in lines(caplog, answer.headers[ID])[0]


def test_what_is_not_http_gets_an_error_with_an_id(world: World, caplog: pytest.LogCaptureFixture) -> None:
    host, _, port = world.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(b"HELLO\r\n\r\n")
        answer = b""
        while piece := client.recv(4096):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b'"code":"invalid_http"' in body
    id = head.partition(ID.encode() + b": ")[2].partition(b"\r\n")[0].decode()
    assert "invalid_http" in lines(caplog, id)[0]


def test_answers_of_our_own_that_are_no_refusals_have_one(world: World) -> None:
    assert UUID(world.client.get("/v1/models").headers[ID])


def test_a_failed_call_is_one_line_with_its_id_and_a_good_one_none(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    good = world.post(request_body("my private words"))
    assert lines(caplog, good.headers[ID]) == []
    world.upstream.stop()
    bad = world.post(request_body("my private words"))
    assert bad.status_code == 502
    [line] = until(lambda: lines(caplog, bad.headers[ID]))
    assert "502 upstream_unreachable, answered by gateway, upstream shop-frontier" in line
    assert [r.levelname for r in caplog.records if r.name == "gateway.proxy.call"] == ["WARNING"]
    for secret in ("private", world.rows.key, "sk-upstream"):
        assert secret not in caplog.text
