"""When an upstream fails: who is asked next, what the client gets, what is recorded and what never leaks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest
from sqlalchemy import select, update

from gateway.core.db import session_scope
from gateway.core.ports import free_port
from gateway.core.secretbox import seal
from gateway.models import Route, Upstream
from gateway.routing.service import change_fallbacks
from tests.gateway.world import (
    UPSTREAM_KEY,
    MockUpstream,
    Reply,
    Rows,
    Seen,
    World,
    add_student,
    charges,
    chat_body,
    pause,
    price,
    request_body,
    stored_calls,
    stream_events,
    streamed,
    until,
)

SPARE_KEY = "sk-spare-secret"
SPARE = chat_body("from the spare", model="spare-model")


@pytest.fixture
def spare() -> Iterator[MockUpstream]:
    mock = MockUpstream()
    mock.reply = Reply([SPARE])
    yield mock
    mock.stop()


def add_fallback(rows: Rows, base_url: str | None, model: str | None = "spare-model", **fields: Any) -> UUID:
    """A further upstream with a key and a price of its own, at the end of the route's fallbacks."""
    with session_scope() as session:
        values = {"kind": "openai", "base_url": base_url, "credential": seal(SPARE_KEY)} | fields
        made = Upstream(project_id=rows.project_id, name=values.pop("name", "spare"), model=None, **values)
        session.add(made)
        session.flush()
        session.add(price(rows.project_id, "1", upstream_id=made.id))
        route = session.scalars(select(Route).where(Route.project_id == rows.project_id, Route.task_id.is_(None))).one()
        change_fallbacks(session, rows.project_id, route.id, [(made.id, model)])
        return made.id


@pytest.fixture
def guarded(world: World, spare: MockUpstream) -> World:
    """A gateway whose route has a fallback."""
    add_fallback(world.rows, spare.base_url)
    world.refresh()
    return world


def at(rows: Rows, base_url: str | None) -> None:
    """Where the first upstream is from now on."""
    with session_scope() as session:
        session.execute(update(Upstream).where(Upstream.id == rows.upstream_id).values(base_url=base_url))


def error(status: int, **headers: str) -> Reply:
    body = b'{ "error": {"message": "no", "type": "t", "param": null, "code": "c"} }\n'
    return Reply([body], status=status, headers={"content-type": "application/json"} | headers)


def cut_in_the_body(_: Seen) -> Reply:
    return Reply([SPARE[:20]], headers={"content-type": "application/json", "content-length": "999"}, cut=True)


def cut_before_the_body(_: Seen) -> Reply:
    return streamed(cut=True)


FAILURES: list[tuple[Any, str]] = [
    # After five failures in a row an upstream rests: 429 is none, it answers.
    *((error(status), f"upstream_http_{status}") for status in (500, 502, 503, 504, 429, 529)),
    (cut_in_the_body, "upstream_broken"),
    (cut_before_the_body, "upstream_broken"),
]


def test_the_next_answers_and_nothing_of_the_first_leaks(guarded: World, spare: MockUpstream) -> None:
    for reply, reason in FAILURES:
        guarded.upstream.reply = reply
        answer = guarded.post(request_body())
        assert (answer.status_code, answer.content) == (200, SPARE), reason
        assert answer.headers["x-stepdown-served-by"] == "upstream:spare"
    assert len(guarded.upstream.seen) == len(spare.seen) == len(FAILURES)
    calls = stored_calls()
    assert [call.fallback_reason for call in calls] == [reason for _, reason in FAILURES]
    for call in calls:
        assert (call.served_by, call.status, call.complete, call.trainable) == ("upstream", 200, True, True)
        assert call.completion_tokens == 4
        with session_scope() as session:
            assert session.get_one(Upstream, call.upstream_id).name == "spare"
    for charge in charges():
        assert charge.upstream_id == calls[0].upstream_id
        assert charge.price["input_per_mtok"] == "1.0000000000", "the price of who answered"
    assert len(charges()) == len(FAILURES)


def test_each_upstream_gets_its_own_key_model_and_nobody_elses(guarded: World, spare: MockUpstream) -> None:
    guarded.upstream.reply = error(503)
    account = {"openai-organization": "org-1", "openai-project": "proj-1", "x-trace": "t", "idempotency-key": "i"}
    account |= {"x-goog-api-key": "goog-1", "helicone-auth": "hel-1", "x-api-key": "ant-1", "cookie": "c=cook-1"}
    answer = guarded.post(request_body(), **account)
    assert answer.content == SPARE
    (first,), (second,) = guarded.upstream.seen, spare.seen
    assert first.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    assert second.header("authorization") == f"Bearer {SPARE_KEY}"
    told = str(second)
    for secret in (guarded.rows.key, UPSTREAM_KEY, "org-1", "proj-1", "goog-1", "hel-1", "ant-1", "cook-1"):
        assert secret not in told
    assert first.header("openai-organization") == "org-1"
    assert (second.header("x-trace"), second.header("idempotency-key")) == ("t", "i")
    assert msgspec.json.decode(second.body) == request_body() | {"model": "spare-model"}
    assert first.body == msgspec.json.encode(request_body())


def test_usage_is_asked_and_stripped_for_whoever_answers(guarded: World, spare: MockUpstream) -> None:
    guarded.upstream.reply = error(503)
    spare.reply = streamed(*stream_events("a", "b"))
    answer = guarded.post(request_body(stream=True))
    assert answer.content == b"".join(stream_events("a", "b", usage=False))
    assert msgspec.json.decode(spare.seen[0].body)["stream_options"] == {"include_usage": True}
    (call,) = stored_calls()
    assert (call.completion_tokens, call.fallback_reason) == (4, "upstream_http_503")


@pytest.mark.parametrize(
    ("base_url", "reason"), [("http://127.0.0.1:{port}/v1", "upstream_unreachable"), (None, "upstream_incomplete")]
)
def test_an_upstream_that_cannot_be_asked(guarded: World, base_url: str | None, reason: str) -> None:
    at(guarded.rows, base_url.format(port=free_port()) if base_url else None)
    guarded.refresh()
    assert guarded.post(request_body()).content == SPARE
    assert stored_calls()[0].fallback_reason == reason


def test_one_that_is_silent_is_given_up(
    monkeypatch, database: str, spare: MockUpstream, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("STEPDOWN_FIRST_BYTE_TIMEOUT_S", "0.2")
    guarded: World = request.getfixturevalue("guarded")
    guarded.upstream.reply = Reply([pause(20), chat_body()])
    assert guarded.post(request_body()).content == SPARE
    assert guarded.upstream.hung_up.wait(5), "it must not go on working for nobody"
    guarded.upstream.reply = streamed(b"", pause(20))
    assert guarded.post(request_body(stream=True)).content == SPARE, "headers alone are not its first byte"
    assert [c.fallback_reason for c in stored_calls()] == ["upstream_timeout"] * 2


def test_if_all_fail_the_first_ones_error_passes_untouched(guarded: World, spare: MockUpstream) -> None:
    first = error(429, **{"retry-after": "7", "x-ratelimit-remaining-requests": "0", "x-request-id": "req_1"})
    guarded.upstream.reply = first
    for second in (error(500), error(404), error(400), cut_in_the_body):
        spare.reply = second
        answer = guarded.post(request_body())
        assert (answer.status_code, answer.content) == (429, first.pieces[0])
        assert (answer.headers["retry-after"], answer.headers["x-request-id"]) == ("7", "req_1")
        assert answer.headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    assert (len(guarded.upstream.seen), len(spare.seen)) == (4, 4)
    for call in stored_calls():
        assert (call.status, call.upstream_id, call.fallback_reason) == (429, guarded.rows.upstream_id, None)


def test_without_a_fallback_its_error_passes_untouched_and_is_not_asked_for_twice(world: World) -> None:
    for status in (400, 429, 500, 503):
        world.upstream.reply = error(status, **{"retry-after": "7"})
        answer = world.post(request_body())
        assert (answer.status_code, answer.content) == (status, world.upstream.reply.pieces[0])
        assert answer.headers["retry-after"] == "7"
    assert len(world.upstream.seen) == 4


def test_a_bad_request_is_the_first_ones_to_refuse(guarded: World, spare: MockUpstream) -> None:
    for status in (400, 401, 403, 404, 422):
        guarded.upstream.reply = error(status)
        assert guarded.post(request_body()).status_code == status
    assert spare.seen == []


def test_a_stream_that_has_begun_is_cut_not_continued_elsewhere(guarded: World, spare: MockUpstream) -> None:
    begun = stream_events("a")[0]
    guarded.upstream.reply = streamed(begun, pause(0.05), cut=True)
    with guarded.client.stream("POST", "/v1/chat/completions", json=request_body(stream=True)) as answer:
        got = []
        with pytest.raises(httpx.RemoteProtocolError):
            got.extend(answer.iter_raw())
    assert spare.seen == []
    (call,) = stored_calls()
    assert (call.served_by, call.complete, call.trainable) == ("upstream", False, False)


def test_what_one_provider_has_stored_is_asked_of_it_alone(guarded: World, spare: MockUpstream) -> None:
    guarded.upstream.reply = error(503)
    with session_scope() as session:
        session.execute(update(Route).values(alias="*"))
    guarded.refresh()
    assert guarded.client.get("/v1/responses/resp_1").status_code == 503
    turn = {"model": "gpt-4o", "input": "go on"}
    for refers in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
        assert guarded.post(turn | refers, "/v1/responses").status_code == 503
    assert spare.seen == []
    assert guarded.post(turn, "/v1/responses").content == SPARE


def test_one_that_does_not_speak_the_endpoint_is_passed_over(guarded: World, spare: MockUpstream) -> None:
    with session_scope() as session:
        session.execute(update(Upstream).where(Upstream.name == "spare").values(kind="litellm"))
    guarded.refresh()
    guarded.upstream.reply = error(503)
    embed = {"model": "gpt-4o", "input": "x"}
    assert guarded.post(embed, "/v1/embeddings").status_code == 503
    with session_scope() as session:
        kinds = {"spare": "openai", "shop-frontier": "litellm"}
        for name, kind in kinds.items():
            session.execute(update(Upstream).where(Upstream.name == name).values(kind=kind))
    guarded.refresh()
    spare.reply = error(400)
    answer = guarded.post(embed, "/v1/embeddings")
    assert (answer.status_code, answer.content) == (400, error(400).pieces[0]), "the first that could be asked"
    assert stored_calls()[-1].fallback_reason == "endpoint_not_spoken"


def test_after_a_student_too(guarded: World, spare: MockUpstream) -> None:
    add_student(guarded.rows, f"http://127.0.0.1:{free_port()}/v1")
    with session_scope() as session:
        route = session.scalars(select(Route).where(Route.task_id.is_not(None))).one()
        spare_id = session.scalars(select(Upstream.id).where(Upstream.name == "spare")).one()
        change_fallbacks(session, guarded.rows.project_id, route.id, [(spare_id, None)])
    guarded.refresh()
    guarded.upstream.reply = error(503)
    assert guarded.post(request_body()).content == SPARE
    assert stored_calls()[0].fallback_reason == "student_unreachable, upstream_http_503"


def test_an_upstream_that_rests_is_passed_by_and_tried_again(guarded: World, spare: MockUpstream) -> None:
    clock = [0.0]
    resting = guarded.app._relay.upstreams_resting
    resting._clock = lambda: clock[0]
    guarded.upstream.reply = error(503)
    for _ in range(7):
        assert guarded.post(request_body()).content == SPARE
    assert len(guarded.upstream.seen) == 5, "after five failures in a row it rests"
    state = guarded.client.get("/readyz").json()
    assert state["resting"] == [str(guarded.rows.upstream_id)]
    assert any("shop-frontier fails" in problem for problem in state["problems"])
    gauge = f'stepdown_upstream_resting{{id="{guarded.rows.upstream_id}",upstream="shop-frontier"}}'
    assert f"{gauge} 1.0" in guarded.client.get("/metrics").text

    spare.reply = error(500)
    assert guarded.post(request_body()).status_code == 500, "when all else fails it is asked all the same"
    assert len(guarded.upstream.seen) == 6
    spare.reply, clock[0] = Reply([SPARE]), 6.0
    guarded.post(request_body())
    assert len(guarded.upstream.seen) == 7, "the rest is over: one call tries it"
    guarded.upstream.reply, clock[0] = Reply([chat_body()]), 60.0
    assert guarded.post(request_body()).content == chat_body()
    assert guarded.client.get("/readyz").json()["resting"] == []
    assert f"{gauge} 0.0" in guarded.client.get("/metrics").text
    assert stored_calls()[6].fallback_reason == "upstream_resting"


def test_without_a_fallback_a_failing_upstream_is_asked_every_time(world: World) -> None:
    world.upstream.reply = error(503)
    for _ in range(8):
        assert world.post(request_body()).status_code == 503
    assert len(world.upstream.seen) == 8


def test_a_client_that_goes_ends_what_is_under_way_at_the_fallback(guarded: World, spare: MockUpstream) -> None:
    guarded.upstream.reply, spare.reply = error(503), Reply([pause(20), SPARE])
    with pytest.raises(httpx.ReadTimeout):
        guarded.client.post("/v1/chat/completions", json=request_body(), timeout=0.5)
    assert spare.hung_up.wait(5), "before its first byte too"
    (call,) = until(stored_calls)
    assert (call.status, call.served_by, call.complete) == (499, "upstream", False)


def test_nobody_else_is_asked_for_a_client_that_went(monkeypatch, database: str, spare: MockUpstream, request) -> None:
    monkeypatch.setenv("STEPDOWN_HANGUP", "drain")
    guarded: World = request.getfixturevalue("guarded")
    gone = threading.Event()

    async def until_gone() -> None:
        await asyncio.to_thread(gone.wait, 10)

    guarded.upstream.reply = Reply([until_gone, b"{}"], status=503)
    with pytest.raises(httpx.ReadTimeout):
        guarded.client.post("/v1/chat/completions", json=request_body(), timeout=0.3)
    until(lambda: any(watch.gone for watch in guarded.app._relay.watchman._watches))
    gone.set()
    (call,) = until(stored_calls)
    assert (call.status, spare.seen) == (503, [])
