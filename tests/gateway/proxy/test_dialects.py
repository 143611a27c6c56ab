"""Every dialect through the gateway: whom it reaches, with which address and credential, and what is kept of it."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from gateway.capture.bodies import load_request, load_response
from gateway.core.db import session_scope
from gateway.core.secretbox import seal
from gateway.models import Call, Route, Upstream
from gateway.proxy.paths import deployment_of, endpoint_of
from gateway.proxy.sse import DoneWatch
from tests.gateway.world import (
    DONE,
    UPSTREAM_KEY,
    Reply,
    World,
    charges,
    chat_body,
    event,
    stored_calls,
    streamed,
)

ASK = {"model": "claude-9", "max_tokens": 99, "system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-9", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Hello."}], "usage": {"input_tokens": 9, "output_tokens": 3},
}  # fmt: skip


def kinds(world: World, kind: str, base_url: str | None = None) -> None:
    """Makes the route's upstream one of another kind."""
    with session_scope() as session:
        upstream = session.get_one(Upstream, world.rows.upstream_id)
        upstream.kind, upstream.base_url = kind, base_url or upstream.base_url
    world.refresh()


def route(world: World, alias: str) -> None:
    with session_scope() as session:
        session.add(Route(project_id=world.rows.project_id, alias=alias, upstream_id=world.rows.upstream_id))
    world.refresh()


def bodies(call: Call) -> tuple[object, object]:
    with session_scope() as session:
        return load_request(session, call), load_response(session, call)


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "api-key"])
def test_messages_reach_anthropic_and_are_kept_whole(world: World, header: str) -> None:
    kinds(world, "anthropic")
    route(world, "claude-9")
    world.upstream.reply = Reply([msgspec.json.encode(MESSAGE)])
    key = world.rows.key if header != "authorization" else f"Bearer {world.rows.key}"
    with httpx.Client(base_url=world.url) as client:
        answer = client.post("/v1/messages", json=ASK, headers={header: key, "anthropic-beta": "x"})
    assert answer.json() == MESSAGE
    (seen,) = world.upstream.seen
    assert (seen.path, seen.header("x-api-key"), seen.header("authorization")) == ("/v1/messages", UPSTREAM_KEY, None)
    assert (seen.header("anthropic-version"), seen.header("anthropic-beta")) == ("2023-06-01", "x")
    (call,) = stored_calls()
    assert (call.endpoint, call.trainable, call.preview, call.answer_preview) == ("messages", True, "Hi", "Hello.")
    assert (call.prompt_tokens, call.completion_tokens, call.finish_reason) == (9, 3, "stop")
    assert call.fingerprint is not None
    assert bodies(call) == (ASK, MESSAGE)
    assert len(charges()) == 1


def test_a_streamed_message_is_recorded_when_its_last_event_is_whole(world: World) -> None:
    kinds(world, "anthropic")
    route(world, "claude-9")
    start = MESSAGE | {"content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    pieces = [b"event: " + e["type"].encode() + b"\n" + event(e) for e in events]
    world.upstream.reply = streamed(*pieces)
    answer = world.post(ASK | {"stream": True}, "/v1/messages")
    assert answer.content == b"".join(pieces)
    assert b"stream_options" not in world.upstream.seen[0].body
    (call,) = stored_calls()
    assert (call.complete, call.trainable) == (True, True)
    assert bodies(call)[1] == MESSAGE


def test_the_anthropic_client_gets_its_own_kind_of_error(world: World) -> None:
    kinds(world, "anthropic")
    refused = world.post(ASK, "/v1/messages")
    assert refused.status_code == 404
    assert refused.json()["type"] == "error"
    assert refused.json()["error"]["type"] == "not_found_error"
    assert "claude-9" in refused.json()["error"]["message"]
    unknown = httpx.post(f"{world.url}/v1/messages", json=ASK, headers={"x-api-key": "sk-ant-1"})
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (401, "authentication_error")
    chat = world.post({"model": "gpt-4o", "messages": []})
    assert (chat.status_code, chat.json()["error"]["code"]) == (404, "endpoint_not_spoken")


def test_counting_tokens_is_noted_and_batches_are_only_passed_on(world: World) -> None:
    kinds(world, "anthropic")
    route(world, "claude-9")
    world.upstream.reply = Reply([b'{"input_tokens":9}'])
    assert world.post(ASK, "/v1/messages/count_tokens").json() == {"input_tokens": 9}
    assert world.post({"requests": []}, "/v1/messages/batches").status_code == 200
    assert [seen.path for seen in world.upstream.seen] == ["/v1/messages/count_tokens", "/v1/messages/batches"]
    (call,) = stored_calls()
    assert (call.endpoint, call.request) == ("messages.count_tokens", None)


def test_an_azure_client_reaches_azure_byte_for_byte(world: World) -> None:
    base = world.upstream.base_url.removesuffix("/v1")
    kinds(world, "azure", base)
    body = b'{ "messages":[{"role":"user","content":"Hi"}] }'
    path = "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
    answer = httpx.post(world.url + path, content=body, headers={"api-key": world.rows.key})
    assert answer.content == chat_body()
    (seen,) = world.upstream.seen
    assert (seen.path + "?" + seen.query, seen.body) == (path, body)
    assert (seen.header("api-key"), seen.header("authorization")) == (UPSTREAM_KEY, None)
    (call,) = stored_calls()
    assert (call.alias, call.endpoint, call.trainable) == ("gpt-4o", "chat.completions", True)


def test_an_azure_client_reaches_openai_and_an_openai_client_azure(world: World) -> None:
    world.post({"messages": [{"role": "user", "content": "Hi"}]}, "/openai/deployments/gpt-4o/chat/completions")
    (seen,) = world.upstream.seen
    assert (seen.path, msgspec.json.decode(seen.body)["model"]) == ("/v1/chat/completions", "gpt-4o")
    base = world.upstream.base_url.removesuffix("/v1")
    kinds(world, "azure", f"{base}/openai?api-version=2024-10-21")
    for path in ("chat/completions", "embeddings", "responses"):
        assert world.post({"model": "gpt-4o", "messages": [], "input": ""}, f"/v1/{path}").status_code == 200
    paths = [f"{seen.path}?{seen.query}" for seen in world.upstream.seen[1:]]
    deployment = "/openai/deployments/gpt-4o"
    assert paths == [
        f"{deployment}/chat/completions?api-version=2024-10-21",
        f"{deployment}/embeddings?api-version=2024-10-21",
        "/openai/responses?api-version=2024-10-21",
    ]
    kinds(world, "azure", f"{base}/openai/v1")
    world.post({"model": "gpt-4o", "messages": []})
    assert world.upstream.seen[-1].path == "/openai/v1/chat/completions"


def test_the_older_completions_are_kept_whole_and_their_usage_is_asked_for(world: World) -> None:
    chunks = [event({"id": "c", "choices": [{"index": 0, "text": "Hello", "finish_reason": "stop"}]})]
    usage = event({"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
    world.upstream.reply = streamed(*chunks, usage, DONE)
    answer = world.post({"model": "gpt-4o", "prompt": "Say hello", "stream": True}, "/v1/completions")
    assert answer.content == b"".join([*chunks, DONE])
    assert b'"include_usage":true' in world.upstream.seen[0].body
    (call,) = stored_calls()
    assert (call.endpoint, call.trainable, call.prompt_tokens, call.preview) == ("completions", True, 3, "Say hello")


def test_two_upstreams_of_two_dialects_need_no_route_for_each_model(world: World) -> None:
    route(world, "*")
    with session_scope() as session:
        session.add(
            Upstream(
                project_id=world.rows.project_id, name="claude", kind="anthropic", model=None,
                base_url=world.upstream.base_url, credential=seal("sk-ant-theirs"),
            )
        )  # fmt: skip
    kinds(world, "azure", world.upstream.base_url)
    world.upstream.reply = Reply([msgspec.json.encode(MESSAGE)])
    assert world.post(ASK, "/v1/messages").headers["x-stepdown-served-by"] == "upstream:claude"
    assert world.upstream.seen[0].header("x-api-key") == "sk-ant-theirs"
    assert stored_calls()[0].upstream_id is not None


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("/openai/deployments/a/chat/completions", "chat/completions"),
        ("/openai/deployments/a%2Fb/embeddings/", "embeddings"),
        ("/openai/v1/responses", "responses"),
        ("/openai/responses/resp_1", "responses/resp_1"),
        ("/messages", "messages"),
        ("/v1/v1//messages/count_tokens/", "messages/count_tokens"),
        ("/v1/anything/else", "anything/else"),
        ("/settings", None),
    ],
)
def test_paths(path: str, endpoint: str | None) -> None:
    assert endpoint_of(path) == endpoint


def test_the_deployment_of_a_path() -> None:
    assert deployment_of("/openai/deployments/a%2Fb/embeddings") == "a/b"
    assert deployment_of("/v1/chat/completions") == ""


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize(
    ("before", "last"),
    [
        (b'data: {"a":1}\n\n', b"data: [DONE]"),
        (b'data: {"x": "event: message_stop"}\n\n', b'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
        (b": c\r\n\r\n", b'event: response.completed\r\ndata: {"type":"response.completed","response":{}}\r\n\r\n'),
        (b"data: x\n\n", b'data: {"type":"response.failed","response":{}}\n\n'),
        (b"data: x\n\n", b'data: {"response":{},"type":"response.incomplete"}\nevent: response.incomplete\n\n'),
    ],
)  # fmt: skip
def test_the_end_of_a_stream_is_seen_with_its_last_byte(before: bytes, last: bytes, step: int) -> None:
    watch, stream = DoneWatch(), before + last
    pieces = [stream[i : i + step] for i in range(0, len(stream), step)]
    assert [watch.seen(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
