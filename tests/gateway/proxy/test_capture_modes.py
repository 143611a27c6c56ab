"""What a key, a header or the settings keep out of the record stays out of it."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from gateway.capture.bodies import load_request, load_response
from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.models import ApiKey
from tests.gateway.world import World, charges, request_body, stored_calls, stream_events, streamed

SECRET = "the patient is called Anna"


def spooled_bytes() -> bytes:
    return b"".join(p.read_bytes() for p in settings().spool_dir.glob("*.spool"))


@pytest.mark.parametrize("how", ["header", "key"])
@pytest.mark.parametrize("stream", [False, True])
def test_metadata_keeps_tokens_and_money_but_no_words(world: World, how: str, stream: bool) -> None:
    if stream:
        world.upstream.reply = streamed(*stream_events("answer-word"))
    if how == "key":
        with session_scope() as session:
            session.execute(update(ApiKey).values(capture="metadata"))
        world.refresh()
    world.post(request_body(SECRET, stream=stream), **({"x-stepdown-capture": "metadata"} if how == "header" else {}))
    spooled = spooled_bytes()
    assert spooled
    assert b"Anna" not in spooled
    assert b"answer-word" not in spooled
    (call,) = stored_calls()
    assert (call.prompt_tokens, call.completion_tokens, call.finish_reason) == (20, 4, "stop")
    assert (call.complete, call.trainable, call.preview, call.answer_preview) == (True, False, "", "")
    with session_scope() as session:
        assert load_request(session, call) is None
        assert load_response(session, call) is None
    assert [c.call_id for c in charges()] == [call.id]


def test_off_leaves_a_charge_and_nothing_else(world: World) -> None:
    assert world.post(request_body(SECRET), **{"x-stepdown-capture": "off"}).status_code == 200
    assert b"Anna" not in spooled_bytes()
    assert stored_calls() == []
    (charge,) = charges()
    assert charge.call_id is None
    assert charge.usage["prompt"] == 20
    assert world.upstream.seen[0].header("x-stepdown-capture") is None


def test_a_header_cannot_open_what_the_key_closes(world: World) -> None:
    with session_scope() as session:
        session.execute(update(ApiKey).values(capture="off"))
    world.refresh()
    world.post(request_body(SECRET), **{"x-stepdown-capture": "full"})
    assert stored_calls() == []


def test_a_misspelt_wish_counts_as_off(world: World) -> None:
    world.post(request_body(SECRET), **{"x-stepdown-capture": "metdata"})
    assert stored_calls() == []
