"""An upstream that does not speak OpenAI's wire, through the side process: a scripted Anthropic behind the gateway."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import openai
import pytest

from gateway.core.errors import StepdownError
from gateway.providers.translator import Told, arguments, tidy
from tests.gateway.world import UPSTREAM_KEY, MockUpstream, Reply, Seen, running_gateway, seed, stored_calls, until

TOLD = Told("anthropic/claude-x", "http://x", "k", 5)
USAGE = {"input_tokens": 11, "output_tokens": 3}


def anthropic(seen: Seen) -> Reply:
    asked = msgspec.json.decode(seen.body)
    if asked["messages"][-1]["content"][0]["text"] == "too fast":
        error = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}
        return Reply([msgspec.json.encode(error)], status=429, headers={"retry-after": "9"})
    if not asked.get("stream"):
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
                  "content": [{"type": "text", "text": "bonjour"}], "stop_sequence": None, "usage": USAGE}  # fmt: skip
        return Reply([msgspec.json.encode(answer)])
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
         "model": "claude-x", "content": [], "stop_reason": None, "usage": {"input_tokens": 11, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "bon"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "jour"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]  # fmt: skip
    pieces = [b"event: %s\ndata: %s\n\n" % (e["type"].encode(), msgspec.json.encode(e)) for e in events]
    return Reply(pieces, headers={"content-type": "text/event-stream"}, chunked=True)


def test_a_provider_with_another_wire(database: str, upstream: MockUpstream) -> None:
    upstream.reply = anthropic
    rows = seed(upstream.base_url.removesuffix("/v1"), kind="litellm", model="anthropic/claude-x")
    with running_gateway() as (url, app):
        until(lambda: app.translator.ready, 60)
        client = openai.OpenAI(base_url=f"{url}/v1", api_key=rows.key, max_retries=0)
        ask = {"model": "gpt-4o", "messages": [{"role": "user", "content": "say hello"}]}
        assert client.chat.completions.create(**ask).choices[0].message.content == "bonjour"
        chunks = list(client.chat.completions.create(**ask, stream=True))
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == "bonjour"
        with pytest.raises(openai.RateLimitError, match="Slow down"):
            client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "too fast"}])
        with pytest.raises(openai.BadRequestError, match="api_base"):
            client.chat.completions.create(**ask, extra_body={"api_base": "http://thief"})
        child = app.translator._process
        assert child is not None
    assert child.returncode is not None, "it ends with the gateway"
    assert {s.header("x-api-key") for s in upstream.seen} == {UPSTREAM_KEY}
    assert all(s.path == "/v1/messages" for s in upstream.seen)
    assert not any("x-stepdown-provider" in str(s.headers) for s in upstream.seen)
    plain, stream, limited, refused = stored_calls()
    for call in (plain, stream):
        assert (call.trainable, call.prompt_tokens, call.completion_tokens) == (True, 11, 3)
        assert call.cost is not None
    assert (limited.status, refused.status) == (429, 400)
    assert call.answer_preview == "bonjour"


@pytest.mark.parametrize(
    "field", ["base_url", "api_key", "api_base", "custom_llm_provider", "fallbacks", "mock_response", "extra_headers"]
)
def test_nothing_of_litellms_own_is_taken_from_a_client(field: str) -> None:
    with pytest.raises(StepdownError, match=field) as refused:
        arguments({"messages": [], field: "x"}, TOLD)
    assert refused.value.status == 400


def test_the_route_names_model_address_and_key() -> None:
    call = arguments({"model": "other", "messages": [], "store": True, "metadata": {"a": 1}, "seed": 1}, TOLD)
    assert (call["model"], call["base_url"], call["api_key"], call["seed"]) == (
        "anthropic/claude-x",
        "http://x",
        "k",
        1,
    )
    assert not call.keys() & {"store", "metadata"}


def test_a_usage_chunk_has_no_choices() -> None:
    assert tidy({"choices": [{"index": 0, "delta": {}}], "usage": {"a": 1}})["choices"] == []
    kept = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"a": 1}}
    assert tidy(kept) == kept


def test_it_does_not_start_without_its_parent() -> None:
    started = subprocess.run(
        [sys.executable, "-m", "gateway.providers.translator"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert started.returncode == 1
    assert b"started by the gateway" in started.stderr


def test_the_gateway_carries_neither_litellm_nor_the_openai_client() -> None:
    code = (
        "import sys, gateway.app, gateway.admin.app; gateway.app.create_app();"
        "print([m for m in ('litellm', 'openai', 'torch', 'transformers', 'numpy', 'scipy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
