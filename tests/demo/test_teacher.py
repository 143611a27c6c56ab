"""The scripted teacher as clients meet it: its own process, asked through the real `openai` client."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import openai
import pytest

from demo import grammar, wire

TEXT = "the app crashes, no rush"
RIGHT = '{"category":"crash","urgency":"low","product":"app","needs_human":false}'


def chat(text: str) -> Any:
    """The app's messages, untyped: the client's own types are unions of dictionaries."""
    return grammar.messages(text)


@pytest.fixture
def client(teacher_url: str, teacher_key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=teacher_url, api_key=teacher_key, max_retries=0) as client:
        yield client


def test_an_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=wire.MODEL, messages=chat(TEXT))
    assert answer.choices[0].message.content == RIGHT
    assert answer.choices[0].finish_reason == "stop"
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert "stand-in" in answer.model
    assert answer.system_fingerprint == wire.FINGERPRINT
    assert answer.usage
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert 100 < answer.usage.prompt_tokens < 250
    assert 10 < answer.usage.completion_tokens < 50


@pytest.mark.parametrize("with_usage", [True, False])
def test_a_stream(client: openai.OpenAI, with_usage: bool) -> None:
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if with_usage else {}
    stream = client.chat.completions.create(model=wire.MODEL, messages=chat(TEXT), stream=True, **options)
    chunks = list(stream)
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    told = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert told[0].delta.role == "assistant"
    assert "".join(choice.delta.content or "" for choice in told) == RIGHT
    assert [choice.finish_reason for choice in told] == [None] * (len(told) - 1) + ["stop"]
    whole = client.chat.completions.create(model=wire.MODEL, messages=chat(TEXT))
    assert (chunks[-1].usage == whole.usage) if with_usage else all(chunk.usage is None for chunk in chunks)


async def test_raw_events(teacher_url: str, teacher_key: str) -> None:
    body = {"model": wire.MODEL, "messages": chat(TEXT), "stream": True}
    headers = {"authorization": f"Bearer {teacher_key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{teacher_url}/chat/completions", json=body, headers=headers) as response,
    ):
        assert response.content_type == "text/event-stream"
        assert response.headers["x-request-id"]
        raw = (await response.read()).decode()
    assert raw.endswith("data: [DONE]\n\n")
    assert all(event.startswith("data: ") for event in raw.strip().split("\n\n"))
    assert '"usage"' not in raw


def test_a_streams_first_token_comes_before_its_last(teacher_url: str, teacher_key: str) -> None:
    with openai.OpenAI(base_url=teacher_url, api_key=teacher_key) as client:
        started = time.monotonic()
        stream = client.chat.completions.create(
            model=wire.MODEL,
            messages=chat(TEXT),
            stream=True,
        )
        times = [time.monotonic() - started for _ in stream]
    assert times[0] < times[-1]
    assert times == sorted(times)


def test_limit_stop_and_n(client: openai.OpenAI) -> None:
    messages = chat(TEXT)
    short = client.chat.completions.create(model=wire.MODEL, messages=messages, max_tokens=3)
    assert short.choices[0].finish_reason == "length"
    assert RIGHT.startswith(short.choices[0].message.content or "-")
    cut = client.chat.completions.create(model=wire.MODEL, messages=messages, stop='","urgency', n=2)
    assert [c.message.content for c in cut.choices] == ['{"category":"crash'] * 2


def test_errors(client: openai.OpenAI, teacher_url: str) -> None:
    messages = chat(TEXT)
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-none", messages=messages)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.AuthenticationError) as refused:
        openai.OpenAI(base_url=teacher_url, api_key="sk-wrong").models.list()
    assert refused.value.code == "invalid_api_key"
    assert "sk-wrong" not in str(refused.value)
    with pytest.raises(openai.BadRequestError) as empty:
        client.chat.completions.create(model=wire.MODEL, messages=[])
    assert empty.value.param == "messages"
    nobody: Any = [{"role": "nobody", "content": "x"}]
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=wire.MODEL, messages=nobody)
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-none")


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"model":"frontier-large"}', b"\xff"])
async def test_malformed_bodies_get_an_openai_error(teacher_url: str, teacher_key: str, body: bytes) -> None:
    async with (
        aiohttp.ClientSession(headers={"authorization": f"Bearer {teacher_key}"}) as session,
        session.post(f"{teacher_url}/chat/completions", data=body) as response,
    ):
        assert response.status == 400
        error = (await response.json())["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_models_say_that_they_are_a_stand_in(client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert models[0].id == wire.MODEL
    assert all("stand-in" in model.owned_by for model in models)


async def test_prices(teacher_url: str, teacher_key: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(teacher_url.replace("/v1", "/prices")) as response,
    ):
        prices = await response.json()
    assert {prices["input"], prices["cached_input"], prices["output"]} == {"2.50", "0.25", "15.00"}
    assert "stand-in" in prices["note"]


def test_structured_verdicts(client: openai.OpenAI) -> None:
    request = {
        "kind": "group",
        "task": {"messages": chat(TEXT)},
        "criteria": [{"name": "all_right", "question": "Is every field right?"}],
        "vetoes": [],
        "candidates": [{"id": "A", "output": "no idea"}, {"id": "B", "output": RIGHT}],
    }
    schema: Any = {"name": "stepdown_verdicts", "strict": True, "schema": {"type": "object"}}
    form: Any = {"type": "json_schema", "json_schema": schema}
    answer = client.chat.completions.create(
        model=wire.MODEL,
        messages=[{"role": "user", "content": json.dumps(request)}],
        response_format=form,
    )
    verdicts = json.loads(answer.choices[0].message.content or "")["verdicts"]
    assert [(v["id"], v["criteria"]["all_right"]) for v in verdicts] == [("A", 0.0), ("B", 1.0)]


async def test_64_at_once_take_one_delay_not_64(teacher_url: str, teacher_key: str) -> None:
    async with openai.AsyncOpenAI(base_url=teacher_url, api_key=teacher_key, max_retries=0) as client:
        calls = [
            client.chat.completions.create(model=wire.MODEL, messages=chat(t.text)) for t in grammar.generate(64, 1)
        ]
        answers = await asyncio.gather(*calls)
    assert all(set(json.loads(a.choices[0].message.content or "")) == set(grammar.FIELDS) for a in answers)
