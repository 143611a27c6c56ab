"""The openai package, unmodified: everything beside chat completions."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.gateway.clients.captured import captured
from tests.gateway.clients.provider import EMBEDDING
from tests.gateway.clients.shapes import TEXT, USAGE, WORD
from tests.gateway.world import World, seed, stored_calls

ASK = "How is the weather?"


class Place(BaseModel):
    city: str


def test_responses(app: openai.OpenAI) -> None:
    answer = app.responses.create(model="gpt-4o", input=ASK, instructions="Be short.")
    assert answer.output_text == TEXT
    assert answer.usage is not None
    assert answer.usage.total_tokens == sum(USAGE)
    parsed = app.responses.parse(model="gpt-4o", input="Where?", text_format=Place)
    assert parsed.output_parsed == Place(city=WORD)
    plain, shaped = captured()
    assert (plain.call.endpoint, plain.call.answer_preview, plain.call.preview) == ("responses", TEXT, ASK)
    assert plain.request == {"model": "gpt-4o", "input": ASK, "instructions": "Be short."}
    assert plain.response["output"][0]["content"][0]["text"] == TEXT
    assert plain.response["id"] == answer.id
    assert shaped.request["text"]["format"]["name"] == "Place"
    assert plain.call.trainable
    assert plain.call.fingerprint is not None


def test_streamed_responses(app: openai.OpenAI) -> None:
    chunks = list(app.responses.create(model="gpt-4o", input=ASK, stream=True))
    assert "".join(c.delta for c in chunks if c.type == "response.output_text.delta") == TEXT
    with app.responses.stream(model="gpt-4o", input="Where?", text_format=Place) as stream:
        kinds = [event.type for event in stream]
    assert kinds[0] == "response.created"
    assert stream.get_final_response().output_parsed == Place(city=WORD)
    plain, shaped = captured()
    assert (plain.call.streamed, shaped.call.streamed) == (True, True)
    assert plain.response["output"][0]["content"][0]["text"] == TEXT
    assert plain.response["status"] == "completed"
    assert shaped.call.trainable


def test_a_tool_in_responses(app: openai.OpenAI) -> None:
    tool = openai.pydantic_function_tool(Place, name="look_up")["function"]
    tools = [{"type": "function", **tool}]
    with app.responses.stream(model="gpt-4o", input="How is it?", tools=tools) as stream:
        list(stream)
    (call,) = stream.get_final_response().output
    assert call.type == "function_call"
    assert call.parsed_arguments == {"city": WORD}
    told = {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"}
    answer = app.responses.create(model="gpt-4o", input=[told], tools=tools)
    assert answer.output_text == TEXT
    first, second = captured()
    assert first.response["output"][0]["call_id"] == call.call_id
    assert first.call.finish_reason == "tool_calls"
    assert second.request["input"] == [told]


def test_a_stored_response(app: openai.OpenAI, town: World) -> None:
    made = app.responses.create(model="gpt-4o", input="hi")
    assert app.responses.retrieve(made.id).output_text == TEXT
    assert [item.id for item in app.responses.input_items.list(made.id)] == ["msg_in"]
    app.responses.cancel(made.id)
    app.responses.delete(made.id)
    assert [seen.path.removeprefix("/v1/responses") for seen in town.upstream.seen] == [
        "", f"/{made.id}", f"/{made.id}/input_items", f"/{made.id}/cancel", f"/{made.id}",
    ]  # fmt: skip


async def test_asynchronous_responses(town: World) -> None:
    app = openai.AsyncOpenAI(base_url=f"{town.url}/v1", api_key=town.rows.key)
    async with app, app.responses.stream(model="gpt-4o", input="hi") as stream:
        assert (await stream.get_final_response()).output_text == TEXT


def test_completions(app: openai.OpenAI) -> None:
    assert app.completions.create(model="gpt-4o", prompt="Weather:").choices[0].text == TEXT
    chunks = list(app.completions.create(model="gpt-4o", prompt="Weather:", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == TEXT
    plain, stream = captured()
    assert plain.request["prompt"] == stream.request["prompt"] == "Weather:"
    assert plain.response["choices"][0]["text"] == stream.response["choices"][0]["text"] == TEXT


def test_embeddings(app: openai.OpenAI) -> None:
    answer = app.embeddings.create(model="gpt-4o", input=["hi"])
    assert answer.data[0].embedding == EMBEDDING
    (call,) = stored_calls()
    assert (call.endpoint, call.prompt_tokens, call.complete) == ("embeddings", USAGE[0], True)


def test_a_file_is_uploaded(app: openai.OpenAI, town: World) -> None:
    sound = bytes(range(256)) * 500
    answer = app.audio.transcriptions.create(model="gpt-4o", file=("speech.wav", sound))
    assert answer.text == TEXT
    assert sound in town.upstream.seen[0].body


def test_models_are_ours_and_behind_a_catch_all_the_upstreams_too(app: openai.OpenAI, town: World) -> None:
    assert [model.id for model in app.models.list()] == ["gpt-4o"]
    assert app.models.retrieve("gpt-4o").owned_by == "stepdown"
    open_to_all = seed(town.upstream.base_url, name="open", alias="*")
    town.refresh()
    assert [model.id for model in app.with_options(api_key=open_to_all.key).models.list()] == ["theirs"]


def test_azure(town: World) -> None:
    with openai.AzureOpenAI(azure_endpoint=town.url, api_key=town.rows.key, api_version="2025-04-01-preview") as azure:
        messages: Any = [{"role": "user", "content": ASK}]
        answer = azure.chat.completions.create(model="gpt-4o", messages=messages)
        assert answer.choices[0].message.content == TEXT
        with azure.chat.completions.stream(model="gpt-4o", messages=messages) as stream:
            assert stream.get_final_completion().choices[0].message.content == TEXT
        assert azure.embeddings.create(model="gpt-4o", input=["hi"]).data[0].embedding == EMBEDDING
        with pytest.raises(openai.NotFoundError, match="Known: gpt-4o"):
            azure.chat.completions.create(model="gpt-9", messages=messages)
    assert [c.call.endpoint for c in captured()] == ["chat.completions", "chat.completions", "embeddings"]
    assert [c.message["content"] for c in captured()[:2]] == [TEXT, TEXT]


def test_azures_new_addresses(town: World) -> None:
    with openai.OpenAI(base_url=f"{town.url}/openai/v1/", api_key=town.rows.key) as azure:
        assert azure.responses.create(model="gpt-4o", input=ASK).output_text == TEXT
    assert captured()[0].call.answer_preview == TEXT
