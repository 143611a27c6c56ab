"""Streams: pieces as they come, usage asked and stripped, cuts and hang-ups."""

from __future__ import annotations

import asyncio
import socket
import threading

import httpx
import msgspec
import pytest

from gateway.capture.bodies import load_response
from gateway.core.db import session_scope
from gateway.models import Call
from tests.gateway.world import (
    DONE,
    USAGE_CHUNK,
    Reply,
    Seen,
    World,
    charges,
    chunk,
    event,
    pause,
    request_body,
    stored_calls,
    stream_events,
    streamed,
    until,
)

ASKED = {"stream_options": {"include_usage": True}}


def response_of(call: Call) -> dict:
    with session_scope() as session:
        found = load_response(session, call)
    assert found is not None
    return found


def test_pieces_are_relayed_as_they_come(world: World) -> None:
    """The upstream sends its second piece only when the client has the first: buffering would never end."""
    first, second = stream_events("a", "b")[0], b"".join(stream_events("a", "b")[1:])
    arrived = threading.Event()

    async def until_arrived() -> None:
        await asyncio.to_thread(arrived.wait, 10)

    world.upstream.reply = streamed(first, until_arrived, second)
    with world.client.stream("POST", "/v1/chat/completions", json=request_body(stream=True, **ASKED)) as answer:
        pieces = answer.iter_raw()
        assert next(pieces) == first
        arrived.set()
        assert b"".join(pieces) == second
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("size", [1, 7, 37, 4096])
def test_a_stream_passes_byte_for_byte_however_it_is_cut(world: World, size: int) -> None:
    noise = b": ping\n\nevent: ping\ndata: {}\n\nid: 1\r\nretry: 5\r\n\r\n"
    whole = noise + b"".join(stream_events("h\u00e9llo \U0001f600", ' "data: [DONE]" \n\n'))
    world.upstream.reply = streamed(*(whole[i : i + size] for i in range(0, len(whole), size)))
    answer = world.post(request_body(stream=True, **ASKED))
    assert answer.content == whole
    assert msgspec.json.decode(world.upstream.seen[0].body) == request_body(stream=True, **ASKED)
    (call,) = stored_calls()
    assert (call.trainable, call.completion_tokens, call.finish_reason) == (True, 4, "stop")
    assert response_of(call)["choices"][0]["message"]["content"] == 'h\u00e9llo \U0001f600 "data: [DONE]" \n\n'


@pytest.mark.parametrize("size", [1, 37, 100_000])
def test_usage_is_asked_upstream_and_stripped(world: World, size: int) -> None:
    events = stream_events("a")
    whole = b"".join(events)
    world.upstream.reply = streamed(*(whole[i : i + size] for i in range(0, len(whole), size)))
    raw = msgspec.json.encode(request_body(stream=True))
    answer = world.post(raw)
    assert answer.content == b"".join(e for e in events if e != event(USAGE_CHUNK))
    sent = world.upstream.seen[0].body
    assert sent == raw[:-1] + b',"stream_options":{"include_usage":true}}'
    (call,) = stored_calls()
    assert (call.prompt_tokens, call.completion_tokens) == (20, 4)
    assert [e.source_id for e in charges()] == [call.id]


def test_other_stream_options_stay(world: World) -> None:
    world.upstream.reply = streamed(*stream_events("a"))
    world.post(request_body(stream=True, stream_options={"include_obfuscation": False}))
    options = msgspec.json.decode(world.upstream.seen[0].body)["stream_options"]
    assert options == {"include_obfuscation": False, "include_usage": True}


def test_usage_beside_choices_is_not_ours_to_strip(world: World) -> None:
    last = event(chunk({}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}))
    world.upstream.reply = streamed(event(chunk({"content": "a"})), last, DONE)
    assert last in world.post(request_body(stream=True)).content
    assert stored_calls()[0].completion_tokens == 2


def test_an_upstream_that_refuses_our_wish_for_usage_is_asked_as_the_app_asked(world: World) -> None:
    def strict(seen: Seen) -> Reply:
        if b"stream_options" in seen.body:
            return Reply([b'{"error":{"message":"extra fields: stream_options"}}'], status=422)
        return streamed(*stream_events("a", usage=False))

    world.upstream.reply = strict
    raw = msgspec.json.encode(request_body(stream=True))
    for _ in range(2):
        assert world.post(raw).content == b"".join(stream_events("a", usage=False))
    assert [s.body == raw for s in world.upstream.seen] == [False, True, True], "asked once, then remembered"
    call = stored_calls()[0]
    assert (call.trainable, call.cost) == (True, None), "no usage, no cost: nothing is guessed"


def test_a_refusal_of_the_apps_own_request_passes(world: World) -> None:
    bad = Reply([b'{"error":{"message":"temperature"}}'], status=400)
    world.upstream.reply = bad
    answer = world.post(request_body(stream=True, temperature=9))
    assert (answer.status_code, answer.content) == (400, bad.pieces[0])


def test_an_error_inside_a_stream_reaches_the_client_and_nothing_is_learned(world: World) -> None:
    failed = event({"error": {"message": "The server had an error", "type": "server_error"}})
    world.upstream.reply = streamed(event(chunk({"content": "a"})), failed)
    assert failed in world.post(request_body(stream=True)).content
    (call,) = stored_calls()
    assert (call.complete, call.trainable, call.error) == (False, False, "The server had an error")


@pytest.mark.parametrize("missing", ["done", "finish"])
def test_a_stream_that_only_seems_to_end_is_not_learned(world: World, missing: str) -> None:
    events = stream_events("a")
    kept = events[:-1] if missing == "done" else [e for e in events if b'"stop"' not in e]
    world.upstream.reply = streamed(*kept)
    assert world.post(request_body(stream=True, **ASKED)).content == b"".join(kept)
    (call,) = stored_calls()
    assert (call.complete, call.trainable) == (False, False)
    assert call.answer_preview == "a"


def test_a_cut_stream_is_cut_for_the_client_too(world: World) -> None:
    events = stream_events("a", "b")
    world.upstream.reply = streamed(*events[:2], cut=True)
    got: list[bytes] = []
    with world.client.stream("POST", "/v1/chat/completions", json=request_body(stream=True)) as answer:
        pieces = answer.iter_raw()
        with pytest.raises(httpx.RemoteProtocolError):
            got.extend(pieces)
    assert b"".join(got) == b"".join(events[:2])
    (call,) = stored_calls()
    assert (call.status, call.complete, call.trainable) == (200, False, False)
    assert (call.error or "").startswith("upstream_cut")
    assert call.answer_preview == "a"


def test_a_whole_answer_shorter_than_announced_is_a_cut(world: World) -> None:
    world.upstream.reply = Reply([b'{"choices":[{"finish_reason":"stop",'], headers={"content-length": "99"}, cut=True)
    answer = world.post(request_body())
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_broken")
    (call,) = stored_calls()
    assert (call.complete, call.trainable, call.status) == (False, False, 502)


def test_a_stream_that_falls_silent_is_cut(
    database: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("STEPDOWN_IDLE_TIMEOUT_S", "1.2")
    world: World = request.getfixturevalue("world")
    events = stream_events("a", "b")
    world.upstream.reply = streamed(events[0], pause(0.7), events[1], pause(0.7), *events[2:])
    assert world.post(request_body(stream=True, **ASKED)).content == b"".join(events), "each pause was allowed"
    world.upstream.reply = streamed(*events[:2], pause(20), *events[2:])
    with pytest.raises(httpx.RemoteProtocolError):
        world.post(request_body(stream=True))
    assert world.upstream.hung_up.wait(5)
    call = stored_calls()[-1]
    assert (call.complete, call.trainable, call.answer_preview) == (False, False, "a")
    assert (call.error or "").startswith("upstream_idle_timeout")


def hang_up_after_first_piece(world: World) -> None:
    with world.client.stream("POST", "/v1/chat/completions", json=request_body(stream=True)) as answer:
        next(answer.iter_raw())


def waiting(world: World, before: list[bytes], after: list[bytes], finished: threading.Event) -> Reply:
    """Sends some events, waits for the client to go, then the rest."""

    async def wait() -> None:
        for _ in range(50):
            await asyncio.sleep(0.02)
            if world.upstream.hung_up.is_set():
                return

    async def note() -> None:
        finished.set()

    return streamed(*before, wait, *after, note)


def slow(world: World, finished: threading.Event) -> None:
    """An answer whose client goes in the middle of it."""
    events = stream_events("a", "b")
    world.upstream.reply = waiting(world, events[:2], events[2:], finished)
    hang_up_after_first_piece(world)


def test_a_client_that_hangs_up_aborts_the_upstream(world: World) -> None:
    finished = threading.Event()
    slow(world, finished)
    assert world.upstream.hung_up.wait(5)
    (call,) = until(stored_calls)
    assert (call.complete, call.trainable, call.error) == (False, False, "client_hangup")
    assert call.answer_preview == "a"
    assert not finished.is_set()


def test_a_client_that_goes_after_the_last_event_costs_no_connection(world: World) -> None:
    """Clients close at [DONE]; the upstream ends its answer a moment later, and its connection can be used again."""
    finished = threading.Event()
    world.upstream.reply = waiting(world, stream_events("a", "b"), [], finished)
    with world.client.stream("POST", "/v1/chat/completions", json=request_body(stream=True)) as answer:
        assert any(b"[DONE]" in piece for piece in answer.iter_raw())
    assert finished.wait(5)
    assert not world.upstream.hung_up.is_set()
    (call,) = until(stored_calls)
    assert (call.complete, call.trainable, call.error, call.answer_preview) == (True, True, None, "ab")


def test_with_drain_the_answer_is_read_to_its_end(
    database: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("STEPDOWN_HANGUP", "drain")
    world: World = request.getfixturevalue("world")
    finished = threading.Event()
    slow(world, finished)
    assert finished.wait(5)
    (call,) = until(stored_calls)
    assert (call.complete, call.trainable, call.answer_preview) == (True, True, "ab")
    assert not world.upstream.hung_up.is_set()


def test_a_client_that_hangs_up_before_the_answer_aborts_the_upstream(world: World) -> None:
    async def forever() -> None:
        await asyncio.sleep(20)

    world.upstream.reply = Reply([forever])
    body = msgspec.json.encode(request_body())
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {world.rows.key}\r\n"
    host, port = world.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: world.upstream.seen)
    assert world.upstream.hung_up.wait(5)
    (call,) = until(stored_calls)
    assert (call.status, call.error, call.trainable) == (499, "client_hangup", False)


def test_n_answers_and_tool_calls_in_a_stream(world: World) -> None:
    def piece(index: int, delta: dict, finish: str | None = None) -> bytes:
        return event(chunk({}) | {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]})

    call_a = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": ""}}
    world.upstream.reply = streamed(
        piece(1, {"role": "assistant", "content": "x"}),
        piece(0, {"role": "assistant", "tool_calls": [call_a]}),
        piece(0, {"tool_calls": [{"index": 0, "function": {"arguments": '{"q"'}}]}),
        piece(1, {"content": "y"}, "stop"),
        piece(0, {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}, "tool_calls"),
        DONE,
    )
    world.post(request_body(stream=True, n=2))
    (call,) = stored_calls()
    first, second = response_of(call)["choices"]
    assert first["message"]["tool_calls"] == [
        {"type": "function", "id": "a", "function": {"name": "look", "arguments": '{"q":1}'}}
    ]
    assert (first["finish_reason"], second["message"]["content"]) == ("tool_calls", "xy")
    assert call.trainable
