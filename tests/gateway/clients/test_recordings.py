"""Recorded exchanges of real providers: an app's client gets from the gateway what it would get from the provider."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.proxy.test_recordings import RECORDINGS, recordings, replaying
from tests.gateway.world import running_gateway, seed, stored_calls

pytestmark = [
    pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not beside this clone"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # models that are no longer offered
]
Ask = Callable[[dict[str, Any]], Any]


def asking(base_url: str, key: str) -> dict[str, Ask]:
    """How each kind of exchange is asked for, by the client that apps use for it."""
    app = openai.OpenAI(base_url=f"{base_url}/v1", api_key=key, max_retries=0)
    claude = anthropic.Anthropic(base_url=base_url, api_key=key, max_retries=0)
    return {
        "chat": partial(outcome, app.chat.completions.create),
        "responses": partial(outcome, app.responses.create),
        "messages": partial(outcome, claude.messages.create),
    }


def outcome(create: Callable[..., Any], exchange: dict[str, Any]) -> Any:
    """What an app sees: an answer, its chunks, or an error."""
    request = exchange["request"]
    known = inspect.signature(create).parameters
    named = {name: value for name, value in request.items() if name in known}
    options: dict[str, Any] = {"extra_headers": {"x-replay-id": exchange["id"]}, "timeout": 20}
    if rest := {name: value for name, value in request.items() if name not in known}:
        options["extra_body"] = rest
    try:
        answer = create(**named, **options)
        if exchange["streamed"]:
            return [chunk.model_dump(warnings=False) for chunk in answer]
        return answer.model_dump(warnings=False)
    except (openai.APIStatusError, anthropic.APIStatusError) as error:
        return type(error), error.status_code, error.message
    except (openai.APIError, anthropic.APIError) as error:
        return type(error), str(error)


def without_usage(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chunks without the extra one that an app gets if it asks for usage."""
    return [chunk for chunk in chunks if chunk.get("choices") != [] or not chunk.get("usage")]


def test_no_difference_between_gateway_and_provider(database: str) -> None:
    exchanges = [e for number, e in enumerate(recordings()) if e["streamed"] or e["status"] != 200 or number % 4 == 0]
    seen: Counter[str] = Counter()
    with replaying("--piece", "37") as replay:
        rows = seed(f"{replay}/v1", alias="*")
        other = seed(f"{replay}/v1", alias="*", name="claude", kind="anthropic")
        direct = asking(replay, "any")
        with running_gateway() as (url, _):
            relayed = asking(url, rows.key) | {"messages": asking(url, other.key)["messages"]}
            for exchange in exchanges:
                kind, request = exchange["kind"], exchange["request"]
                expected, got = direct[kind](exchange), relayed[kind](exchange)
                asked_usage = (request.get("stream_options") or {}).get("include_usage")
                if kind == "chat" and isinstance(expected, list) and not asked_usage:
                    expected = without_usage(expected)
                assert got == expected, exchange["id"]
                seen[f"{kind} {type(got).__name__}"] += 1
    assert min(seen[f"{kind} {form}"] for kind in direct for form in ("dict", "list", "tuple")) >= 1, seen
    assert len(stored_calls()) == len(exchanges)
