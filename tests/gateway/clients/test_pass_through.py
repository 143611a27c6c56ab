"""The openai and anthropic packages at a pass-through address: only their base URL is changed, their key is theirs."""

from __future__ import annotations

import anthropic
import openai
import pytest
from pydantic import BaseModel

from gateway.core.db import session_scope
from gateway.keys.service import create_key
from gateway.models import Upstream
from tests.gateway.clients.captured import captured
from tests.gateway.clients.shapes import NUMBER, TEXT, WORD
from tests.gateway.world import World

KEY = "sk-proj-my-own-0815"


@pytest.fixture
def base_url(town: World) -> str:
    with session_scope() as session:
        _, token = create_key(session, town.rows.project_id, "app", upstream_id=town.rows.upstream_id)
    town.refresh()
    return f"{town.url}/p/{token}/v1"


class Place(BaseModel):
    city: str
    degrees: int


async def test_openai_keeps_its_key(town: World, base_url: str) -> None:
    with openai.OpenAI(base_url=base_url, api_key=KEY) as app:
        ask = {"model": "gpt-4o", "messages": [{"role": "user", "content": "How is the weather?"}]}
        assert app.chat.completions.create(**ask).choices[0].message.content == TEXT  # type: ignore[call-overload]
        with app.chat.completions.stream(**ask) as stream:  # type: ignore[arg-type]
            assert stream.get_final_completion().choices[0].message.content == TEXT
        parsed = app.chat.completions.parse(**ask, response_format=Place).choices[0].message.parsed  # type: ignore[arg-type]
        assert parsed == Place(city=WORD, degrees=NUMBER)
        assert app.responses.create(model="gpt-4o", input="How is the weather?").output_text == TEXT
    async with openai.AsyncOpenAI(base_url=base_url, api_key=KEY) as other:
        assert (await other.chat.completions.create(**ask)).choices[0].message.content == TEXT  # type: ignore[call-overload]
    assert {seen.header("authorization") for seen in town.upstream.seen} == {f"Bearer {KEY}"}
    assert {seen.path.split("?")[0] for seen in town.upstream.seen} == {
        "/v1/chat/completions", "/v1/responses",
    }  # fmt: skip
    assert len(captured()) == 5


def test_anthropic_keeps_its_key(town: World, base_url: str) -> None:
    with session_scope() as session:
        session.get_one(Upstream, town.rows.upstream_id).kind = "anthropic"
    town.refresh()
    with anthropic.Anthropic(base_url=base_url.removesuffix("/v1"), api_key=KEY, max_retries=0) as app:
        ask = {"model": "gpt-4o", "max_tokens": 100, "messages": [{"role": "user", "content": "How is the weather?"}]}
        assert app.messages.create(**ask).content[0].text == TEXT  # type: ignore[call-overload]
        with app.messages.stream(**ask) as stream:  # type: ignore[arg-type]
            assert stream.get_final_text() == TEXT
    sent = {seen.header("x-api-key") or seen.header("authorization") for seen in town.upstream.seen}
    assert sent <= {KEY, f"Bearer {KEY}"}, "whichever way the package sends it"
    assert sent
    assert [c.call.endpoint for c in captured()] == ["messages"] * 2
