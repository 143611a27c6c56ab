"""A student answers behind the same name, or the upstream does and nobody notices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from gateway.core.ports import free_port
from gateway.core.settings import settings
from gateway.proxy.resting import Resting
from tests.gateway.world import (
    ALIAS,
    DONE,
    SSE,
    USAGE_CHUNK,
    MockUpstream,
    Reply,
    World,
    add_student,
    charges,
    chat_body,
    chunk,
    event,
    pause,
    request_body,
    stored_calls,
    stream_events,
    streamed,
    until,
)


@pytest.fixture
def engine() -> Iterator[MockUpstream]:
    mock = MockUpstream()
    mock.reply = Reply([chat_body("from the student", model="tickets-1")])
    yield mock
    mock.stop()


def handed_over(world: World, engine: MockUpstream | None, **manifest: Any) -> None:
    add_student(world.rows, engine.base_url if engine else None, **manifest)
    world.refresh()


def student_events(*words: str) -> list[bytes]:
    return [e.replace(b"gpt-4o-2024-08-06", b"tickets-1") for e in stream_events(*words)]


def test_a_student_answers_under_the_apps_model_name(world: World, engine: MockUpstream) -> None:
    handed_over(world, engine)
    answer = world.post(request_body(temperature=0))
    assert answer.json()["model"] == ALIAS
    assert answer.json()["choices"][0]["message"]["content"] == "from the student"
    assert answer.headers["x-stepdown-served-by"] == "student:tickets-1"
    assert answer.headers["x-stepdown-route-revision"] == "7"
    assert world.upstream.seen == []
    (call,) = stored_calls()
    assert (call.served_by, call.upstream_id, call.fallback_reason) == ("student", None, None)
    assert (call.prompt_tokens, call.completion_tokens, call.trainable) == (20, 4, True)
    assert call.student_id is not None
    assert call.route_revision_id is not None
    (charge,) = charges()
    assert charge.student_id == call.student_id
    assert charge.amount == call.cost


def test_the_student_is_asked_what_it_was_trained_on(world: World, engine: MockUpstream) -> None:
    handed_over(world, engine)
    settings().secrets_dir.mkdir(exist_ok=True)
    (settings().secrets_dir / "engine.key").write_text("engine-secret\n")
    body = request_body(
        temperature=0.5, seed=3, stop=["x"], store=True, metadata={"a": "b"}, user="u", service_tier="auto",
        max_completion_tokens=500, parallel_tool_calls=True,
    )  # fmt: skip
    body["messages"][1]["content"] = [{"type": "text", "text": "My"}, {"type": "text", "text": "invoice"}]
    body["messages"] += [{"role": "assistant", "content": None}, {"role": "user", "content": "go on"}]
    assert world.post(body).headers["x-stepdown-served-by"] == "student:tickets-1"
    (seen,) = engine.seen
    assert msgspec.json.decode(seen.body) == {
        "model": "tickets-1",
        "messages": [
            body["messages"][0],
            {"role": "user", "content": "My\ninvoice"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "go on"},
        ],
        "temperature": 0.5,
        "seed": 3,
        "stop": ["x"],
        "max_tokens": 64,
    }
    assert seen.header("authorization") == "Bearer engine-secret"
    assert world.rows.key not in str(seen.headers)


@pytest.mark.parametrize("size", [1, 11, 100_000])
def test_a_streaming_student_wherever_its_stream_is_cut(world: World, engine: MockUpstream, size: int) -> None:
    handed_over(world, engine)
    whole = b": ping\n\n" + b"".join(student_events("h\u00e9", " \U0001f600", ' "model":"tickets-1"'))
    engine.reply = streamed(*(whole[i : i + size] for i in range(0, len(whole), size)))
    answer = world.post(request_body(stream=True))
    events = [e[6:] for e in answer.text.split("\n\n") if e.startswith("data: ")]
    assert events[-1] == "[DONE]"
    chunks = [msgspec.json.decode(e) for e in events[:-1]]
    assert {c["model"] for c in chunks} == {ALIAS}
    assert all(c["choices"] for c in chunks), "the usage chunk was our wish"
    assert (
        "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == 'h\u00e9 \U0001f600 "model":"tickets-1"'
    )
    assert answer.headers["x-stepdown-served-by"] == "student:tickets-1"
    (call,) = stored_calls()
    assert (call.served_by, call.completion_tokens, call.trainable) == ("student", 4, True)


def test_usage_stays_in_a_students_stream_when_the_app_asked(world: World, engine: MockUpstream) -> None:
    handed_over(world, engine)
    engine.reply = streamed(*student_events("a"))
    answer = world.post(request_body(stream=True, stream_options={"include_usage": True}))
    usage = msgspec.json.decode(answer.text.split("\n\n")[-3][6:])["usage"]
    assert usage.items() >= USAGE_CHUNK["usage"].items()


async def _sleep() -> None:
    await asyncio.sleep(20)


BROKEN: dict[str, tuple[Reply, str]] = {
    "slow": (Reply([_sleep]), "student_timeout"),
    "5xx": (Reply([b"oh"], status=503), "student_http_503"),
    "4xx": (Reply([b'{"error":"too long"}'], status=400), "student_http_400"),
    "no json": (Reply([b"<html>"]), "student_invalid"),
    "cut": (Reply([chat_body()[:50]], chunked=True, cut=True), "student_unreachable"),
    "too long": (Reply([chat_body().replace(b'"stop"', b'"length"')]), "student_too_long"),
}
BROKEN_STREAM: dict[str, tuple[Reply, str]] = {
    "slow": (streamed(pause(0), event(b"")[:3], _sleep), "student_timeout"),
    "error first": (streamed(event({"error": {"message": "engine died"}}), DONE), "student_error"),
    "nothing": (streamed(b": ping\n\n"), "student_invalid"),
    "cut at once": (streamed(b"data: {", cut=True), "student_unreachable"),
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, database: str, request: pytest.FixtureRequest) -> World:
    monkeypatch.setenv("STEPDOWN_STUDENT_TIMEOUT_S", "1")
    return request.getfixturevalue("world")


def test_a_failing_student_is_replaced_unnoticed(impatient: World, engine: MockUpstream) -> None:
    world = impatient
    handed_over(world, engine)
    for reply, reason in BROKEN.values():
        engine.reply = reply
        answer = world.post(request_body())
        assert (answer.status_code, answer.content) == (200, chat_body()), reason
        assert answer.headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    world.upstream.reply = streamed(*stream_events("frontier"))
    for reply, reason in BROKEN_STREAM.values():
        engine.reply = reply
        answer = world.post(request_body(stream=True))
        assert b"frontier" in answer.content, reason
        assert answer.content.count(b"data: [DONE]") == 1
    calls = stored_calls()
    assert [c.fallback_reason for c in calls] == [r for _, r in [*BROKEN.values(), *BROKEN_STREAM.values()]]
    assert {(c.served_by, c.upstream_id, c.student_id, c.trainable) for c in calls} == {
        ("upstream", world.rows.upstream_id, None, True)
    }


def test_a_hanging_student_is_passed_by_after_two_calls(impatient: World, engine: MockUpstream) -> None:
    world = impatient
    handed_over(world, engine)
    engine.reply = Reply([_sleep])
    for _ in range(4):
        assert world.post(request_body()).content == chat_body()
    assert len(engine.seen) == 2
    reasons = [call.fallback_reason for call in stored_calls()]
    assert reasons == ["student_timeout", "student_timeout", "student_resting", "student_resting"]


def test_the_limit_for_a_first_byte_is_no_students_end_either(
    monkeypatch: pytest.MonkeyPatch, database: str, engine: MockUpstream, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("STEPDOWN_FIRST_BYTE_TIMEOUT_S", "0.2")
    world: World = request.getfixturevalue("world")
    handed_over(world, engine)
    engine.reply = Reply([_sleep])
    assert world.post(request_body()).content == chat_body()
    assert stored_calls()[0].fallback_reason == "student_timeout"


def test_one_call_tries_a_resting_student_again() -> None:
    time = [0.0]
    resting = Resting(2, 20.0, clock=lambda: time[0])
    resting.failed("a")
    assert not resting.rests("a")
    resting.failed("a")
    assert [resting.rests("a"), resting.rests("b")] == [True, False]
    time[0] = 5.0
    assert [resting.rests("a"), resting.rests("a")] == [False, True], "one tries, the others wait for what it finds"
    resting.failed("a")
    time[0] = 19.0
    assert resting.rests("a"), "longer than the first time"
    time[0] = 20.0
    assert not resting.rests("a")
    resting.answered("a")
    assert not resting.rests("a")


def test_a_student_that_is_gone_is_replaced(world: World) -> None:
    add_student(world.rows, f"http://127.0.0.1:{free_port()}/v1")
    world.refresh()
    assert world.post(request_body()).content == chat_body()
    assert stored_calls()[0].fallback_reason == "student_unreachable"


def test_a_student_that_breaks_off_later_is_a_cut_and_not_learned(world: World, engine: MockUpstream) -> None:
    handed_over(world, engine)
    engine.reply = streamed(*student_events("a", "b")[:2], pause(0.05), cut=True)
    with pytest.raises(Exception, match="peer closed"):
        world.post(request_body(stream=True))
    (call,) = stored_calls()
    assert (call.served_by, call.complete, call.trainable) == ("student", False, False)


def test_json_is_checked_before_any_of_it_is_sent(world: World, engine: MockUpstream) -> None:
    wanted = {"type": "json_object"}
    body = request_body(response_format=wanted)
    handed_over(world, engine, response_format=wanted)
    engine.reply = Reply([chat_body('{"a":1}')])
    assert world.post(body).headers["x-stepdown-served-by"] == "student:tickets-1"
    engine.reply = Reply([chat_body('{"a":')])
    assert world.post(body).content == chat_body()
    engine.reply = streamed(*student_events('{"a"', ":1}"))
    assert world.post(body | {"stream": True}).headers["x-stepdown-served-by"] == "student:tickets-1"
    engine.reply = streamed(*student_events('{"a"', ":1"))
    world.upstream.reply = streamed(*stream_events("frontier"))
    assert b"frontier" in world.post(body | {"stream": True}).content
    assert [c.fallback_reason for c in stored_calls()] == [None, "student_schema", None, "student_schema"]
    assert b"response_format" not in engine.seen[0].body


FOREIGN = {
    "another prompt": (request_body(system="You write poems."), None),
    "no prompt": (request_body(system=None), None),
    "named another task": (request_body(metadata={"task": "poems"}), None),
    "prompt changed": (request_body(system="You write poems.", metadata={"task": "tickets"}), "prompt_changed"),
    "several answers": (request_body(n=2), "n"),
    "log-probs": (request_body(logprobs=True), "logprobs"),
    "too long": (request_body("word " * 4000), "context_length"),
    "schema": (request_body(response_format={"type": "json_object"}, metadata={"task": "tickets"}), "response_format"),
    "tools": (
        request_body(tools=[{"type": "function", "function": {"name": "f"}}], metadata={"task": "tickets"}), "tools",
    ),
    "image": (
        request_body() | {"messages": [{"role": "system", "content": "You sort tickets. Answer in one word."}, {
            "role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}, "content_not_text",
    ),
}  # fmt: skip


def test_what_the_student_was_not_made_for_goes_to_the_upstream(world: World, engine: MockUpstream) -> None:
    handed_over(world, engine)
    for body, _ in FOREIGN.values():
        assert world.post(body).headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    assert engine.seen == []
    by_order = [c.fallback_reason for c in stored_calls()]
    assert by_order == [reason for _, reason in FOREIGN.values()]
    assert world.post(request_body()).headers["x-stepdown-served-by"] == "student:tickets-1"
    assert world.post(request_body(), **{"x-stepdown-task": "Tickets"}).headers["x-stepdown-served-by"].startswith("st")
    assert world.post(request_body(), **{"x-stepdown-task": "poems"}).headers["x-stepdown-served-by"].startswith("up")


@pytest.mark.parametrize(("stage", "share"), [("shadow", 1.0), ("observe", 1.0), ("canary", 0.0)])
def test_a_student_that_has_not_taken_over_answers_nobody(
    world: World, engine: MockUpstream, stage: str, share: float
) -> None:
    add_student(world.rows, engine.base_url, stage=stage, share=share)
    world.refresh()
    assert world.post(request_body()).headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    assert engine.seen == []


def test_a_route_change_takes_effect_by_itself(world: World, engine: MockUpstream) -> None:
    add_student(world.rows, engine.base_url)
    until(lambda: world.post(request_body()).headers["x-stepdown-served-by"] == "student:tickets-1", 5)


def test_an_event_stream_answered_without_asking_is_relayed(world: World) -> None:
    world.upstream.reply = Reply([b"".join(stream_events("a"))], headers=SSE)
    assert world.post(request_body()).content == b"".join(stream_events("a"))
    assert stored_calls()[0].trainable


VLLM_CHOICE: dict[str, Any] = {"stop_reason": 2, "token_ids": [1], "routed_experts": None}
VLLM_ANSWER: dict[str, Any] = {
    "prompt_logprobs": None, "prompt_token_ids": [5], "kv_transfer_params": None, "service_tier": None,
    "system_fingerprint": "vllm-1",
}  # fmt: skip


def test_a_students_answer_has_openais_fields_and_no_others(world: World, engine: MockUpstream) -> None:
    """What vLLM adds is taken out, and details that it leaves null are counted as OpenAI counts them."""
    handed_over(world, engine)
    said = msgspec.json.decode(chat_body("yes", refusal=None, annotations=None, tool_calls=[], reasoning=None))
    said["choices"][0] |= VLLM_CHOICE
    said["usage"] |= {"prompt_tokens_details": None, "completion_tokens_details": {"reasoning_tokens": 3}}
    engine.reply = Reply([msgspec.json.encode(said | VLLM_ANSWER)])
    answer = world.post(request_body())
    assert answer.headers["x-request-id"] == answer.headers["x-stepdown-request-id"]
    body = answer.json()
    assert set(body) == {"id", "object", "created", "model", "choices", "usage"}
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "yes", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    usage = body["usage"]
    assert (usage["total_tokens"], usage["prompt_tokens_details"]["cached_tokens"]) == (24, 0)
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 3


def test_a_students_chunks_have_openais_fields_and_no_others(world: World, engine: MockUpstream) -> None:
    handed_over(world, engine)
    piece = chunk({"content": "yes", "reasoning": None}) | VLLM_ANSWER
    piece["choices"][0] |= VLLM_CHOICE
    engine.reply = streamed(event(piece), event(chunk({}, "stop")), event(USAGE_CHUNK), DONE)
    answer = world.post(request_body(stream=True, stream_options={"include_usage": True}))
    first, last, usage = [msgspec.json.decode(e[6:]) for e in answer.text.split("\n\n")[:3]]
    assert set(first) == {"id", "object", "created", "model", "choices"}
    assert first["choices"] == [{"index": 0, "delta": {"content": "yes"}, "finish_reason": None}]
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
