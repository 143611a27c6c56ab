"""The anthropic package, unmodified: messages plain, streamed and with tools, counting, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from gateway.core.db import session_scope
from gateway.models import Upstream
from tests.gateway.clients.captured import captured
from tests.gateway.clients.messages import events
from tests.gateway.clients.shapes import TEXT, USAGE, WORD
from tests.gateway.world import UPSTREAM_KEY, Reply, World, stored_calls, streamed

ASK: Any = {"model": "gpt-4o", "max_tokens": 100, "messages": [{"role": "user", "content": "How is the weather?"}]}
TOOLS: Any = [
    {"name": "look_up", "description": "Looks it up.", "input_schema": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
]  # fmt: skip


@pytest.fixture
def town(town: World) -> World:
    """The provider behind it wants Anthropic's headers."""
    with session_scope() as session:
        session.get_one(Upstream, town.rows.upstream_id).kind = "anthropic"
    town.refresh()
    return town


@pytest.fixture
def claude(town: World) -> Iterator[anthropic.Anthropic]:
    """Its base URL has no /v1: the package adds it."""
    with anthropic.Anthropic(base_url=town.url, api_key=town.rows.key, max_retries=0) as client:
        yield client


def test_plain_and_streamed_messages_are_stored_alike(claude: anthropic.Anthropic, town: World) -> None:
    answer = claude.messages.create(**ASK, system="Be short.", stop_sequences=["END"])
    assert [block.text for block in answer.content if block.type == "text"] == [TEXT]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == USAGE
    assert answer._request_id == "req_7"
    with claude.messages.stream(**ASK, system="Be short.", stop_sequences=["END"]) as stream:
        assert "".join(stream.text_stream) == TEXT
    final = stream.get_final_message()
    assert final.content[0].text == TEXT
    assert (final.usage.input_tokens, final.usage.output_tokens) == USAGE
    kinds = [event.type for event in claude.messages.create(**ASK, stream=True)]
    assert kinds[-2:] == ["message_delta", "message_stop"]
    plain, helped, raw = captured()
    assert [c.call.endpoint for c in (plain, helped, raw)] == ["messages"] * 3
    assert [c.call.streamed for c in (plain, helped, raw)] == [False, True, True]
    assert plain.request == ASK | {"system": "Be short.", "stop_sequences": ["END"]}
    assert plain.response["content"] == helped.response["content"] == [{"type": "text", "text": TEXT}]
    assert plain.call.fingerprint == helped.call.fingerprint is not None
    assert plain.call.input_hash == helped.call.input_hash
    assert all(c.call.trainable and c.call.answer_preview == TEXT for c in (plain, helped, raw))
    seen = town.upstream.seen[0]
    assert seen.path == "/v1/messages"
    assert seen.header("anthropic-version") == claude.default_headers["anthropic-version"]
    assert seen.header("x-api-key") == UPSTREAM_KEY
    assert town.rows.key not in str(seen.headers)


def test_a_tool_is_used_and_its_result_told(claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(**ASK, tools=TOOLS) as stream:
        message = stream.get_final_message()
    (use,) = message.content
    assert use.type == "tool_use"
    assert use.input == {"city": WORD}
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "21 degrees"}
    turns = [*ASK["messages"], {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    answer = claude.messages.create(**ASK | {"messages": turns}, tools=TOOLS)
    assert answer.content[0].text == TEXT
    first, second = captured()
    assert first.response["content"][0]["input"] == {"city": WORD}
    assert first.call.finish_reason == "tool_calls"
    assert second.request["messages"][2]["content"] == [result]
    assert first.call.fingerprint == second.call.fingerprint is not None


async def test_the_asynchronous_client(town: World) -> None:
    app = anthropic.AsyncAnthropic(base_url=town.url, api_key=town.rows.key)
    async with app, app.messages.stream(**ASK) as stream:
        assert "".join([text async for text in stream.text_stream]) == TEXT
    assert captured()[0].call.complete


def test_tokens_are_counted_by_the_provider(claude: anthropic.Anthropic) -> None:
    assert claude.messages.count_tokens(model="gpt-4o", messages=ASK["messages"]).input_tokens == USAGE[0]


def test_a_providers_error_keeps_its_class(claude: anthropic.Anthropic, town: World) -> None:
    kinds: dict[int, tuple[str, type[anthropic.APIStatusError]]] = {
        400: ("invalid_request_error", anthropic.BadRequestError),
        401: ("authentication_error", anthropic.AuthenticationError),
        404: ("not_found_error", anthropic.NotFoundError),
        429: ("rate_limit_error", anthropic.RateLimitError),
        529: ("overloaded_error", anthropic.InternalServerError),
    }
    for status, (kind, raised) in kinds.items():
        told = b'{"type":"error","error":{"type":"%s","message":"no"},"request_id":"req_1"}' % kind.encode()
        town.upstream.reply = Reply([told], status=status)
        with pytest.raises(raised, match="no") as failed:
            claude.messages.create(**ASK)
        assert failed.value.status_code == status
    assert [(c.status, c.trainable, c.error) for c in stored_calls()] == [(s, False, "no") for s in kinds]


def test_our_own_errors_have_anthropics_shape(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="Known: gpt-4o") as unknown:
        claude.messages.create(**ASK | {"model": "claude-9"})
    assert unknown.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(anthropic.AuthenticationError, match="not known here"):
        claude.with_options(api_key="sd-wrong").messages.create(**ASK)


def test_an_error_amid_a_stream_is_raised(claude: anthropic.Anthropic, town: World) -> None:
    begun = next(events({"content": [], "role": "assistant", "usage": {"input_tokens": 1}}))
    told = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"too many"}}\n\n'
    town.upstream.reply = streamed(begun, told)
    with pytest.raises(anthropic.APIStatusError, match="too many"):
        list(claude.messages.create(**ASK, stream=True))
    (call,) = stored_calls()
    assert (call.complete, call.trainable, call.error) == (False, False, "too many")
