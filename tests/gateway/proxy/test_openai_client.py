"""The unmodified openai package against the gateway."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from pydantic import BaseModel

from tests.gateway.world import Reply, World, chat_body, stored_calls, stream_events, streamed


@pytest.fixture
def app(world: World) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{world.url}/v1", api_key=world.rows.key, max_retries=0) as client:
        yield client


def test_chat(world: World, app: openai.OpenAI) -> None:
    answer = app.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
    assert answer.choices[0].message.content == "billing"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 24


def test_stream(world: World, app: openai.OpenAI) -> None:
    world.upstream.reply = streamed(*stream_events("one ", "two"))
    with app.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "hi"}], stream=True
    ) as chunks:
        seen = list(chunks)
    assert "".join(c.choices[0].delta.content or "" for c in seen) == "one two"
    assert all(c.choices for c in seen), "an app that did not ask for usage may index choices[0] in every chunk"
    assert stored_calls()[0].completion_tokens == 4


def test_stream_with_usage(world: World, app: openai.OpenAI) -> None:
    world.upstream.reply = streamed(*stream_events("one"))
    chunks = app.chat.completions.create(
        model="gpt-4o",
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    assert [c.usage.total_tokens for c in chunks if c.usage] == [24]


class Ticket(BaseModel):
    category: str


def test_parse(world: World, app: openai.OpenAI) -> None:
    world.upstream.reply = Reply([chat_body('{"category":"billing"}')])
    answer = app.chat.completions.parse(
        model="gpt-4o", messages=[{"role": "user", "content": "hi"}], response_format=Ticket
    )
    assert answer.choices[0].message.parsed == Ticket(category="billing")


def test_raw_response_and_task(world: World, app: openai.OpenAI) -> None:
    answer = app.chat.completions.with_raw_response.create(
        model="gpt-4o",
        messages=[{"role": "user", "content": "hi"}],
        metadata={"task": "Ticket triage", "user": "u1"},
        store=True,
    )
    assert answer.headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    (call,) = stored_calls()
    assert call.tags == {"task": "Ticket triage", "user": "u1"}
    assert call.task_id is not None


def test_errors_have_their_classes(world: World, app: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="Known: gpt-4o"):
        app.chat.completions.create(model="gpt-9", messages=[])
    with pytest.raises(openai.AuthenticationError):
        app.with_options(api_key="sd-wrong").models.list()
    world.upstream.reply = Reply([b'{"error":{"message":"slow down","code":"rate_limit"}}'], status=429)
    with pytest.raises(openai.RateLimitError, match="slow down"):
        app.chat.completions.create(model="gpt-4o", messages=[])
    assert [m.id for m in app.models.list()] == ["gpt-4o"]


def test_a_retry_of_the_client_waits_as_the_provider_says(world: World, app: openai.OpenAI) -> None:
    replies = iter([Reply([b"{}"], status=429, headers={"retry-after-ms": "10"}), Reply([chat_body()])])
    world.upstream.reply = lambda _: next(replies)
    patient = app.with_options(max_retries=1)
    answer = patient.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
    assert answer.choices[0].message.content == "billing"
    assert [c.status for c in stored_calls()] == [429, 200]
