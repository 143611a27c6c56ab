"""The openai package, unmodified: chat completions in every way that it offers them."""

from __future__ import annotations

from typing import Any, Literal

import openai
from openai.types.chat import ChatCompletionUserMessageParam
from pydantic import BaseModel

from tests.gateway.clients.captured import captured
from tests.gateway.clients.shapes import NUMBER, TEXT, USAGE, WORD
from tests.gateway.world import World

ASK: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "How is the weather? \U0001f327"}]


class Place(BaseModel):
    city: str


class Weather(BaseModel):
    """The weather of a place."""

    place: Place
    degrees: int
    sky: Literal["clear", "cloudy"]
    notes: list[str]


WEATHER = Weather(place=Place(city=WORD), degrees=NUMBER, sky="clear", notes=[WORD])


def test_plain_and_streamed_calls_are_stored_alike(app: openai.OpenAI) -> None:
    answer = app.chat.completions.create(model="gpt-4o", messages=ASK, seed=3)
    assert answer.choices[0].message.content == TEXT
    assert answer.usage is not None
    assert answer.usage.total_tokens == sum(USAGE)
    assert answer._request_id == "req_7"
    chunks = list(app.chat.completions.create(model="gpt-4o", messages=ASK, seed=3, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert all(chunk.usage is None for chunk in chunks), "it did not ask for usage"
    plain, stream = captured()
    assert (plain.call.streamed, stream.call.streamed) == (False, True)
    assert plain.message["content"] == stream.message["content"] == TEXT
    assert plain.request == {"model": "gpt-4o", "messages": ASK, "seed": 3}
    assert plain.request["messages"] == stream.request["messages"]
    assert plain.call.trainable
    assert stream.call.trainable
    assert plain.call.input_hash == stream.call.input_hash


def test_usage_that_was_asked_for_arrives(app: openai.OpenAI) -> None:
    options: Any = {"include_usage": True, "include_obfuscation": False}
    chunks = list(app.chat.completions.create(model="gpt-4o", messages=ASK, stream=True, stream_options=options))
    assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == [sum(USAGE)]
    assert chunks[-1].choices == []
    (call,) = captured()
    assert call.request["stream_options"] == options


def test_the_stream_helper(app: openai.OpenAI) -> None:
    with app.chat.completions.stream(model="gpt-4o", messages=ASK, response_format=Weather) as stream:
        kinds = {event.type for event in stream}
    assert kinds >= {"chunk", "content.delta", "content.done"}
    final = stream.get_final_completion()
    assert final.choices[0].message.parsed == WEATHER
    (call,) = captured()
    assert Weather.model_validate_json(call.message["content"]) == WEATHER


def test_parse_and_a_tool_from_a_model(app: openai.OpenAI) -> None:
    answer = app.chat.completions.parse(model="gpt-4o", messages=ASK, response_format=Weather)
    assert answer.choices[0].message.parsed == WEATHER
    tools = [openai.pydantic_function_tool(Weather)]
    called = app.chat.completions.parse(model="gpt-4o", messages=ASK, tools=tools)
    (call,) = called.choices[0].message.tool_calls or []
    assert call.function.parsed_arguments == WEATHER
    shaped, tooled = captured()
    assert shaped.request["response_format"]["json_schema"]["name"] == "Weather"
    assert tooled.request["tools"] == tools
    assert Weather.model_validate_json(tooled.message["tool_calls"][0]["function"]["arguments"]) == WEATHER


def test_a_tool_is_called_and_its_result_told(app: openai.OpenAI) -> None:
    tools = [openai.pydantic_function_tool(Place, name="look_up")]
    conversation: list[Any] = list(ASK)
    with app.chat.completions.stream(model="gpt-4o", messages=conversation, tools=tools) as stream:
        events = list(stream)
    message = stream.get_final_completion().choices[0].message
    (call,) = message.tool_calls or []
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert [event.parsed_arguments for event in done] == [Place(city=WORD)]
    conversation += [message, {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}]
    answer = app.chat.completions.create(model="gpt-4o", messages=conversation, tools=tools)
    assert answer.choices[0].message.content == TEXT
    first, second = captured()
    assert first.message["tool_calls"][0]["id"] == call.id
    assert first.call.finish_reason == "tool_calls"
    assert second.request["messages"][1]["tool_calls"][0]["id"] == call.id
    assert second.request["messages"][2]["content"] == "21 degrees"


async def test_the_asynchronous_client(town: World) -> None:
    async with openai.AsyncOpenAI(base_url=f"{town.url}/v1/", api_key=town.rows.key) as app:
        answer = await app.chat.completions.create(model="gpt-4o", messages=ASK)
        assert answer.choices[0].message.content == TEXT
        async with app.chat.completions.stream(model="gpt-4o", messages=ASK) as stream:
            final = await stream.get_final_completion()
        assert final.choices[0].message.content == TEXT
        text = ""
        async for chunk in await app.chat.completions.create(model="gpt-4o", messages=ASK, stream=True):
            text += chunk.choices[0].delta.content or ""
        assert text == TEXT
    assert [call.message["content"] for call in captured()] == [TEXT] * 3


def test_metadata_and_headers_of_one_call(app: openai.OpenAI) -> None:
    answer = app.chat.completions.with_raw_response.create(
        model="gpt-4o", messages=ASK, metadata={"task": "Weather", "user": "u1"}, store=True
    )
    assert answer.headers["x-stepdown-served-by"] == "upstream:shop-frontier"
    assert answer.headers["x-request-id"] == "req_7"
    assert answer.parse().choices[0].message.content == TEXT
    app.chat.completions.create(model="gpt-4o", messages=ASK, extra_headers={"x-stepdown-task": "weather"})
    told, named = captured()
    assert str(told.call.id) == answer.headers["x-stepdown-request-id"]
    assert told.call.tags == {"task": "Weather", "user": "u1"}
    assert (told.request["metadata"], told.request["store"]) == ({"task": "Weather", "user": "u1"}, True)
    assert told.call.task_id == named.call.task_id is not None


def test_a_streamed_raw_response(app: openai.OpenAI) -> None:
    with app.chat.completions.with_streaming_response.create(model="gpt-4o", messages=ASK, stream=True) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert lines[1] == ": keep-alive"
    assert captured()[0].message["content"] == TEXT
