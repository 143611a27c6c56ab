"""However a conversation goes on, forks or is told again otherwise: each of its calls reads as it was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.capture.bodies import load_request, load_response
from gateway.core.db import session_scope
from tests.gateway.clients import provider
from tests.gateway.world import World, stored_calls

ITEMS = {"chat/completions": "messages", "responses": "input", "messages": "messages"}
TOOLS = {
    "chat/completions": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "responses": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "messages": [{"name": "f", "input_schema": {"type": "object"}}],
}
SAID = st.sampled_from(["hi", "go on", "hi ", "\U0001f31e", "Say: {}", ""])
STEP = st.tuples(
    st.sampled_from(["on", "on", "on", "again", "back", "anew", "edited", "reordered", "doubled"]), SAID, st.booleans()
)


def answered(endpoint: str, response: dict[str, Any]) -> list[Any]:
    """What an app adds to its history of an answer."""
    if endpoint == "responses":
        items: list[Any] = response["output"]
        return items
    if endpoint == "messages":
        return [{"role": "assistant", "content": response["content"]}]
    return [response["choices"][0]["message"]]


def next_turn(history: list[Any], answer: list[Any], how: str, text: str) -> list[Any]:
    """What the app sends next."""
    user = {"role": "user", "content": text}
    if how == "again":
        return history
    if how == "back":
        return [*history[:-2], user]
    if how == "anew":
        return [user]
    if how == "edited":
        answer = [item | {"note": text} for item in answer]
    if how == "reordered":
        answer = [dict(reversed(item.items())) for item in answer]
    if how == "doubled":
        answer = answer * 2
    return [*history, *answer, user]


@pytest.mark.parametrize("endpoint", ITEMS)
def test_any_conversation_is_read_as_it_was_sent(world: World, endpoint: str) -> None:
    world.upstream.reply = provider.reply
    sent: list[tuple[dict[str, Any], dict[str, Any]]] = []

    @settings(max_examples=60)
    @given(st.lists(STEP, min_size=1, max_size=6))
    def talk(steps: list[tuple[str, str, bool]]) -> None:
        history: list[Any] = [{"role": "user", "content": "begin"}]
        for how, text, with_tools in steps:
            body = {"model": "gpt-4o", ITEMS[endpoint]: history} | ({"tools": TOOLS[endpoint]} if with_tools else {})
            response = world.post(body, f"/v1/{endpoint}").json()
            sent.append((body, response))
            history = next_turn(history, answered(endpoint, response), how, text)

    talk()
    calls = stored_calls()
    assert len(calls) == len(sent)
    with session_scope() as session:
        for call, (body, response) in zip(calls, sent, strict=True):
            assert json.dumps(load_request(session, call), sort_keys=True) == json.dumps(body, sort_keys=True)
            assert load_response(session, call) == response
