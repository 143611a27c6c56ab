"""Bad input and broken upstreams: each gets one clear line in OpenAI's error shape."""

from __future__ import annotations

import socket
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from gateway.core.clock import now
from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ports import free_port
from gateway.models import ApiKey, Upstream
from gateway.proxy.wire import ChatRequest
from tests.gateway.world import Reply, World, chat_body, pause, request_body, seed, stored_calls


def refused(answer, status: int, code: str, *says: str, kind: str = "invalid_request_error") -> None:
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert error["type"] == kind
    for part in says:
        assert part in error["message"]


def test_a_missing_key(world: World) -> None:
    world.client.headers.pop("authorization")
    refused(world.post(request_body()), 401, "api_key_missing", "stepdown keys create", kind="authentication_error")
    assert world.upstream.seen == []


def test_a_wrong_key_is_not_repeated(world: World) -> None:
    answer = world.post(request_body(), authorization="Bearer sk-proj-0123456789abcdef")
    refused(answer, 401, "invalid_api_key", "sk-pro…", kind="authentication_error")
    assert "0123456789abcdef" not in answer.text


def test_a_revoked_key_stops_working(world: World) -> None:
    assert world.post(request_body()).status_code == 200
    with session_scope() as session:
        session.execute(update(ApiKey).values(revoked_at=now()))
    world.refresh()
    refused(world.post(request_body()), 401, "invalid_api_key", kind="authentication_error")


def test_a_key_reaches_its_own_project_only(world: World) -> None:
    other = seed(world.upstream.base_url, name="other", alias="other-model")
    world.refresh()
    mine, theirs = request_body(), request_body() | {"model": "other-model"}
    bearer = {"authorization": f"Bearer {other.key}"}
    refused(world.post(theirs), 404, "model_not_found", "other-model", "gpt-4o")
    refused(world.post(mine, **bearer), 404, "model_not_found")
    assert world.post(theirs, **bearer).headers["x-stepdown-served-by"] == "upstream:other-frontier"
    assert [m["id"] for m in world.client.get("/v1/models", headers=bearer).json()["data"]] == ["other-model"]
    assert {c.project_id for c in stored_calls() if c.status == 200} == {other.project_id}


def test_an_unknown_model_names_the_known_ones(world: World) -> None:
    refused(world.post(request_body() | {"model": "gpt-9"}), 404, "model_not_found", "'gpt-9'", "Known: gpt-4o")
    (call,) = stored_calls()
    assert (call.served_by, call.status, call.trainable) == ("gateway", 404, False)


def test_malformed_json(world: World) -> None:
    for body in (b"", b'{"model":"gpt-4o"', b"[1]", b"null", b'"gpt-4o"', b"\xff\xfe{}", b"[" * 9999):
        refused(world.post(body), 400, "malformed_json", "JSON")


def test_a_request_without_a_model(world: World) -> None:
    for body in ({}, {"model": None}, {"model": 7}, {"model": ""}):
        refused(world.post(body), 400, "model_missing", "model")


def test_damaged_and_unknown_encodings(world: World) -> None:
    refused(world.post(b"no gzip", **{"content-encoding": "gzip"}), 400, "body_damaged", "gzip")
    refused(world.post(b"{}", **{"content-encoding": "br"}), 415, "content_encoding_unknown", "'br'")


def test_other_paths_and_methods(world: World) -> None:
    refused(world.client.get("/v1/chat/completions"), 405, "method_not_allowed", "GET")
    refused(world.client.options("/v1/embeddings"), 405, "method_not_allowed", "OPTIONS")
    assert world.upstream.seen == []


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, database: str, request: pytest.FixtureRequest) -> World:
    monkeypatch.setenv("STEPDOWN_MAX_BODY_MB", "1")
    return request.getfixturevalue("world")


def test_bodies_beyond_the_limit(small: World) -> None:
    import gzip

    refused(small.post(request_body("x" * 1_100_000)), 413, "body_too_large", "1 MB", "STEPDOWN_MAX_BODY_MB")
    pieces = (b"x" * 100_000 for _ in range(12))
    refused(small.client.post("/v1/chat/completions", content=pieces), 413, "body_too_large")
    bomb = gzip.compress(msgspec.json.encode(request_body("x" * 1_100_000)))
    refused(small.post(bomb, **{"content-encoding": "gzip"}), 413, "body_too_large")
    assert small.post(request_body()).status_code == 200


def test_a_client_that_asks_first_need_not_send_what_is_too_large(small: World) -> None:
    host, port = small.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {small.rows.key}\r\n"
            "content-length: 2000000\r\nexpect: 100-continue\r\n\r\n"
        )
        client.sendall(head.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_an_upstream_that_is_down(world: World) -> None:
    with session_scope() as session:
        session.execute(update(Upstream).values(base_url=f"http://127.0.0.1:{free_port()}/v1"))
    world.refresh()
    refused(world.post(request_body()), 502, "upstream_unreachable", "shop-frontier", "127.0.0.1", kind="server_error")
    (call,) = stored_calls()
    assert (call.status, call.served_by, call.complete, call.trainable) == (502, "gateway", False, False)
    assert "cannot be reached" in (call.error or "")


def test_an_upstream_that_hangs_up_without_a_word(world: World) -> None:
    asked = []

    def hang_up() -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            asked.append(connection.recv(65536))
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang_up, daemon=True).start()
        with session_scope() as session:
            session.execute(update(Upstream).values(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1"))
        world.refresh()
        answer = world.post(request_body())
    refused(answer, 502, "upstream_broken", "shop-frontier", "may have run", kind="server_error")
    assert len(asked) == 1, "a POST that may have run is never repeated"


def test_an_upstream_that_is_slow(monkeypatch, database: str, request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv("STEPDOWN_FIRST_BYTE_TIMEOUT_S", "0.2")
    world: World = request.getfixturevalue("world")
    world.upstream.reply = Reply([pause(5), chat_body()])
    refused(
        world.post(request_body()), 504, "upstream_timeout", "shop-frontier", "STEPDOWN_FIRST_BYTE_TIMEOUT_S",
        kind="server_error",
    )  # fmt: skip
    assert world.upstream.hung_up.wait(5), "the upstream must not go on working for nobody"


@given(st.binary(max_size=200) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(),
       lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(
           ["model", "stream", "stream_options", "metadata", "messages", "task", "include_usage"]) | st.text(), inner),
       max_leaves=12).map(msgspec.json.encode))  # fmt: skip
def test_no_body_breaks_the_reading(raw: bytes) -> None:
    try:
        request = ChatRequest(raw, None, 1000)
    except StepdownError as error:
        if error.status != 400:
            raise
        return
    body, _, asked = request.outgoing(None, ask_usage=True)
    assert asked
    assert msgspec.json.decode(body)["stream_options"]["include_usage"] is True
