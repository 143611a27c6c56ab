"""What a key lets be kept: words taken out before anything is written, a share of conversations, trajectories."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import update

from gateway.capture.bodies import load_request, load_response
from gateway.capture.redaction import NAMES, Redactor
from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.settings import settings
from gateway.models import ApiKey, Call, Route
from tests.gateway.world import (
    DONE,
    World,
    charges,
    chat_body,
    chunk,
    event,
    request_body,
    stored_calls,
    stream_events,
    streamed,
)

SECRET = "anna@example.org"


def rules(world: World, *redact: dict[str, str], **fields: Any) -> None:
    with session_scope() as session:
        session.execute(update(ApiKey).values(redact=list(redact), **fields))
    world.refresh()


def spooled() -> bytes:
    return b"".join(path.read_bytes() for path in settings().spool_dir.iterdir() if path.is_file())


def bodies(call: Call) -> tuple[Any, Any]:
    with session_scope() as session:
        return load_request(session, call), load_response(session, call)


def test_nothing_is_written_that_a_rule_takes_out_and_the_client_sees_all(world: World) -> None:
    rules(world, {"name": "email"}, {"pattern": "A[0-9]{6}", "replacement": "[ticket]"})
    from gateway.capture.spool import Spool  # what is written, seen as it is written

    written: list[bytes] = []
    append = Spool.append
    try:
        Spool.append = lambda self, envelope, request, response: (  # type: ignore[method-assign]  # to look on
            written.append(request + b"".join(response)) or append(self, envelope, request, response)
        )
        body = request_body(f"I am {SECRET}, ticket A123456", user=SECRET)
        body["messages"].append({"role": "user", "content": "escaped: anna\\u0040example.org"})
        sent = msgspec.json.encode(body).replace(b"\\\\u0040", b"\\u0040")
        world.upstream.reply.pieces = [chat_body(f"Hello {SECRET}")]  # type: ignore[union-attr]  # a Reply here
        answer = world.post(sent)
    finally:
        Spool.append = append  # type: ignore[method-assign]  # as it was
    assert SECRET in answer.text
    assert world.upstream.seen[0].body == sent
    assert b"anna" not in b"".join(written)
    (call,) = stored_calls()
    request, response = bodies(call)
    assert request["messages"][1]["content"] == "I am [email], ticket [ticket]"
    assert (request["messages"][2]["content"], request["user"]) == ("escaped: [email]", "[email]")
    assert response["choices"][0]["message"]["content"] == "Hello [email]"
    assert (call.preview, call.answer_preview, call.trainable) == ("escaped: [email]", "Hello [email]", True)
    assert call.prompt_tokens == 20


def test_a_stream_is_kept_as_what_it_adds_up_to(world: World) -> None:
    rules(world, {"name": "email"})
    tool = {"index": 0, "id": "c1", "type": "function", "function": {"name": "mail", "arguments": '{"to": "anna@exam'}}
    more = {"index": 0, "function": {"arguments": 'ple.org"}'}}
    first = [event(chunk({"role": "assistant", "content": "To anna@"})), event(chunk({"content": "example.org"}))]
    calls = [event(chunk({"tool_calls": [tool]})), event(chunk({"tool_calls": [more]}, "tool_calls")), DONE]
    world.upstream.reply = streamed(*first, *calls)
    answer = world.post(request_body(stream=True))
    assert answer.content == b"".join([*first, *calls])
    assert b"anna@" not in spooled()
    (call,) = stored_calls()
    message = bodies(call)[1]["choices"][0]["message"]
    assert message["content"] == "To [email]"
    assert message["tool_calls"][0]["function"]["arguments"] == '{"to": "[email]"}'
    assert (call.streamed, call.complete, call.trainable) == (True, True, True)


@pytest.mark.parametrize("cut", [True, False])
def test_a_stream_that_is_not_whole_does_not_become_so(world: World, cut: bool) -> None:
    rules(world, {"name": "email"})
    world.upstream.reply = streamed(*stream_events("half")[:-1], cut=cut)
    try:
        world.post(request_body(stream=True))
    except Exception:
        assert cut
    (call,) = stored_calls()
    assert (call.complete, call.trainable) == (False, False)


def test_what_cannot_be_read_is_not_kept(world: World) -> None:
    rules(world, {"name": "email"})
    world.upstream.reply.pieces = [f"<html>{SECRET}".encode()]  # type: ignore[union-attr]  # a Reply here
    assert SECRET in world.post(request_body()).text
    assert b"anna" not in spooled()
    (call,) = stored_calls()
    assert (call.request, call.trainable, call.status) == (None, False, 200)


@pytest.mark.parametrize(
    ("name", "found", "kept"),
    [
        ("email", "write to a.b+c@mail.example.com now", "a@b"),
        ("phone", "call +49 30 1234567 or (555) 123-4567", "in 1234 days"),
        ("credit_card", "card 4111 1111 1111 1111", "order 4111 1111 1111 1112"),
        ("iban", "to DE89 3704 0044 0532 0130 00", "to DE8"),
        ("ipv4", "from 192.168.0.17", "version 1.2.3"),
        ("us_ssn", "ssn 078-05-1120", "part 78-051-120"),
        ("secret", "key sk-proj-abcdefghijklmnop1234 and AKIAIOSFODNN7EXAMPLE", "sk-short"),
    ],
)
def test_rules_by_name(name: str, found: str, kept: str) -> None:
    redactor = Redactor([{"name": name}])
    assert f"[{name}]" in redactor.text(found)
    assert not any(digit in redactor.text(found) for digit in ("4111", "1234567", "3704", "192.", "078", "AKIA"))
    assert redactor.text(kept) == kept
    assert name in NAMES


@pytest.mark.parametrize(
    "rule", [{}, {"name": "nope"}, {"pattern": "("}, {"pattern": "(?=a)b"}, {"pattern": "a" * 1001}]
)
def test_rules_that_are_none(rule: dict[str, str]) -> None:
    with pytest.raises(StepdownError) as wrong:
        Redactor([rule])
    assert wrong.value.status == 422


def test_a_replacement_is_taken_as_it_is() -> None:
    assert Redactor([{"pattern": "(a)(b)", "replacement": r"\2\1"}]).text("xabx") == r"x\2\1x"


def test_whole_conversations_are_sampled_and_all_are_charged(world: World) -> None:
    rules(world, sample=0.5)
    for number in range(24):
        opening = request_body(f"question {number}")
        world.post(opening)
        opening["messages"] += [{"role": "assistant", "content": "billing"}, {"role": "user", "content": "more"}]
        world.post(opening)
    calls = stored_calls()
    kept = [call.request is not None for call in calls]
    assert kept[0::2] == kept[1::2], "both turns of a conversation, or none"
    assert 4 <= sum(kept[0::2]) <= 20
    assert len(charges()) == 48
    rules(world, sample=0.0)
    world.post(request_body("one more"))
    assert stored_calls()[-1].request is None


def test_a_trajectory_is_sampled_as_one_noted_and_not_sent_on(world: World) -> None:
    rules(world, sample=0.5)
    for number in range(24):
        for turn in range(2):
            world.post(request_body(f"{number} {turn}"), **{"x-stepdown-trajectory": f"agent-{number}"})
    calls = stored_calls()
    kept = [call.request is not None for call in calls]
    assert kept[0::2] == kept[1::2]
    assert [call.trajectory for call in calls[:3]] == ["agent-0", "agent-0", "agent-1"]
    assert not any(seen.header("x-stepdown-trajectory") for seen in world.upstream.seen)


@pytest.mark.parametrize(
    ("route", "header", "kept"),
    [
        ({"capture": "metadata"}, None, (1, False)),
        ({"capture": "off"}, None, (0, False)),
        ({"sample": 0.0}, None, (1, False)),
        ({"capture": "metadata"}, "off", (0, False)),
        ({}, None, (1, True)),
    ],
)
def test_a_route_may_let_less_be_kept(
    world: World, route: dict[str, Any], header: str | None, kept: tuple[int, bool]
) -> None:
    with session_scope() as session:
        session.execute(update(Route).values(**({"alias": "gpt-4o"} | route)))
    world.refresh()
    world.post(request_body(), **({"x-stepdown-capture": header} if header else {}))
    calls = stored_calls()
    assert (len(calls), any(call.request is not None for call in calls)) == kept
    assert len(charges()) == 1


@pytest.mark.parametrize(("word", "mode"), [("metadata", "metadata"), ("off", "off"), ("FULL", "full"), ("foo", "off")])
def test_the_answer_says_how_a_wish_was_understood(world: World, word: str, mode: str) -> None:
    answer = world.post(request_body(), **{"x-stepdown-capture": word})
    assert answer.headers["x-stepdown-capture"] == mode
    assert "x-stepdown-capture" not in world.post(request_body()).headers
