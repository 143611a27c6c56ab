"""Law 2: what we do not own passes untouched, in both directions."""

from __future__ import annotations

import gzip
import zlib

import msgspec
import pytest
import zstandard

from gateway.capture.bodies import load_request, load_response
from gateway.core.db import session_scope
from gateway.models import Route, Upstream
from tests.gateway.world import UPSTREAM_KEY, Reply, World, chat_body, request_body, stored_calls

ODD = (
    b'{ "model" : "gpt-4o",\n\t"temperature":0.70, "unknown_field":{"b":1,"a":[1,2.50,1e3]},'
    b'"messages":[{"role":"developer","content":null},{"role":"user","x":"y",'
    b'"content":[{"type":"text","text":"h\\u00e9 \xc3\xa9"}]}], "max_tokens":5,"max_completion_tokens":6 ,'
    b'"store":true}\n'
)


def test_the_body_reaches_the_upstream_byte_for_byte(world: World) -> None:
    assert world.post(ODD).status_code == 200
    assert world.upstream.seen[0].body == ODD
    assert world.upstream.seen[0].path == "/v1/chat/completions"


def test_the_answer_reaches_the_client_byte_for_byte(world: World) -> None:
    odd = b'  {"z":1, "choices":[ {"message":{"content":"\\ud83d\\ude00"},"finish_reason":"stop"}],"new":[]}\n'
    world.upstream.reply = Reply([odd])
    assert world.post(request_body()).content == odd


@pytest.mark.parametrize("chunked", [False, True])
def test_headers_of_the_answer_pass_back(world: World, chunked: bool) -> None:
    passed = {
        "retry-after": "7", "retry-after-ms": "7100", "x-should-retry": "true", "x-request-id": "req_9",
        "x-ratelimit-remaining-tokens": "149000", "openai-processing-ms": "12", "openai-version": "2020-10-01",
    }  # fmt: skip
    body = b'{"error":{"message":"Rate limit","type":"tokens","param":null,"code":"rate_limit_exceeded"}}'
    world.upstream.reply = Reply(
        [body], status=429, headers=passed | {"content-type": "application/json", "set-cookie": "a=b"}, chunked=chunked
    )
    answer = world.post(request_body())
    assert answer.status_code == 429
    assert answer.content == body
    assert {name: answer.headers[name] for name in passed} == passed
    assert "set-cookie" not in answer.headers, "a provider must not set cookies on the dashboard's origin"
    assert answer.headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    (call,) = stored_calls()
    assert str(call.id) == answer.headers["x-stepdown-request-id"]
    assert (call.status, call.complete, call.trainable, call.error) == (429, True, False, "Rate limit")


def test_the_clients_key_stays_and_the_upstreams_goes(world: World) -> None:
    world.post(
        request_body(), **{
            "cookie": "session=secret", "x-api-key": world.rows.key, "openai-organization": "org-1",
            "idempotency-key": "once", "user-agent": "App/1", "x-stepdown-task": "a", "connection": "x-hop, keep-alive",
            "x-hop": "1", "x-stainless-lang": "python",
        }
    )  # fmt: skip
    seen = world.upstream.seen[0]
    assert seen.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    for name, value in {"openai-organization": "org-1", "idempotency-key": "once", "user-agent": "App/1",
                        "x-stainless-lang": "python"}.items():  # fmt: skip
        assert seen.header(name) == value
    names = {name.lower() for name, _ in seen.headers}
    assert not names & {"cookie", "x-api-key", "x-stepdown-task", "x-hop"}
    assert world.rows.key not in str(seen.headers) + seen.body.decode()


def test_an_upstream_without_a_credential_gets_no_key_at_all(world: World) -> None:
    with session_scope() as session:
        session.query(Upstream).update({"credential": None})
    world.refresh()
    assert world.post(request_body()).status_code == 200
    assert world.upstream.seen[0].header("authorization") is None
    assert world.rows.key not in str(world.upstream.seen[0].headers)


def test_a_query_passes_on(world: World) -> None:
    world.post(request_body(), path="/v1/chat/completions?api-version=2024-10-21&x=%2F")
    assert world.upstream.seen[0].query == "api-version=2024-10-21&x=%2F"


def test_slips_in_the_path_are_tolerated(world: World) -> None:
    for path in (
        "/v1/chat/completions/", "/v1//chat/completions", "//v1/chat/completions", "/v1/v1/chat/completions",
        "/chat/completions",
    ):  # fmt: skip
        assert world.post(request_body(), path=path).status_code == 200, path
    assert {s.path for s in world.upstream.seen} == {"/v1/chat/completions"}
    assert len(world.upstream.seen) == 5


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.compress)],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_compressed_request_is_read_but_relayed_as_it_came(world: World, encoding: str, pack, stream: bool) -> None:
    packed = pack(ODD.replace(b'"store":true', b'"stream":true') if stream else ODD)
    assert world.post(packed, **{"content-encoding": encoding}).status_code == 200
    assert world.upstream.seen[0].body == packed
    assert world.upstream.seen[0].header("content-encoding") == encoding
    (call,) = stored_calls()
    with session_scope() as session:
        assert load_request(session, call)["messages"][1]["content"] == [{"type": "text", "text": "hé é"}]


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_a_compressed_answer_passes_as_it_is_and_is_read_for_the_record(world: World, encoding: str, pack) -> None:
    packed = pack(chat_body("refund"))
    world.upstream.reply = Reply([packed], headers={"content-type": "application/json", "content-encoding": encoding})
    with world.client.stream(
        "POST", "/v1/chat/completions", json=request_body(), headers={"accept-encoding": f"br, {encoding}"}
    ) as answer:
        assert b"".join(answer.iter_raw()) == packed
    assert answer.headers["content-encoding"] == encoding
    assert world.upstream.seen[0].header("accept-encoding") == encoding, "brotli could not be read for the record"
    (call,) = stored_calls()
    with session_scope() as session:
        assert load_response(session, call)["choices"][0]["message"]["content"] == "refund"
    assert call.trainable


def test_another_model_name_upstream_changes_only_the_model(world: World) -> None:
    with session_scope() as session:
        session.query(Route).update({"upstream_model": "gpt-5-mini"})
    world.refresh()
    world.post(ODD)
    sent, given = msgspec.json.decode(world.upstream.seen[0].body), msgspec.json.decode(ODD)
    assert list(sent) == list(given)
    assert sent == given | {"model": "gpt-5-mini"}


def test_large_bodies_pass(world: World) -> None:
    body = request_body("x" * 12_000_000)
    answer = b'{"choices":[],"pad":"' + b"y" * 6_000_000 + b'"}'
    world.upstream.reply = Reply([answer])
    assert world.post(body).content == answer
    assert len(world.upstream.seen[0].body) > 12_000_000


def test_models_lists_the_projects_aliases_only(world: World) -> None:
    listed = world.client.get("/v1/models").json()
    assert [m["id"] for m in listed["data"]] == ["gpt-4o"]
    assert world.client.get("/v1/models/gpt-4o").json()["id"] == "gpt-4o"
    assert world.client.get("/v1/models/other").status_code == 404
    assert "shop-frontier" not in str(listed)
    assert "127.0.0.1" not in str(listed)
