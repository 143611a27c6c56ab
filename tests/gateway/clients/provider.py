"""A provider that plays its part for real clients: it answers what was asked, in the shape that was asked for.

A question is answered with TEXT; a schema is filled in; where tools are offered the first is called, and its result
answered with TEXT. What a client ought to get out of each, whatever its dialect, is written down beside it.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import msgspec

from tests.gateway.clients import messages, responses
from tests.gateway.clients.shapes import TEXT, USAGE, filled, parts
from tests.gateway.world import Reply, Seen, event, streamed

EMBEDDING = [0.25, -0.5, 1.0]
MODEL = {"id": "theirs", "object": "model", "created": 1, "owned_by": "provider"}
HEARD = {"type": "tokens", "input_tokens": USAGE[0], "output_tokens": USAGE[1], "total_tokens": sum(USAGE)}
_ids = count(1)


def reply(seen: Seen) -> Reply:
    """What the provider says to a request."""
    path = seen.path.removeprefix("/v1/")
    sent = gzip.decompress(seen.body) if seen.header("content-encoding") == "gzip" else seen.body
    body = msgspec.json.decode(sent) if sent.startswith(b"{") else {}
    if path in _ENDPOINTS:
        return _ENDPOINTS[path](body)
    if path.startswith("responses/"):
        return whole(responses.stored(path.removeprefix("responses/")))
    raise AssertionError(f"the provider knows no {path}")


def whole(body: Any) -> Reply:
    """An answer in one piece."""
    headers = {"content-type": "application/json", "x-request-id": "req_7", "request-id": "req_7"}
    return Reply([msgspec.json.encode(body)], headers=headers)


def chat(body: dict[str, Any]) -> Reply:
    """POST /chat/completions."""
    message = chat_message(body)
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    top = {"id": f"chatcmpl-{next(_ids)}", "created": 1, "model": "gpt-4o-2024-08-06", "service_tier": "default"}
    usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
    if body.get("stream"):
        asked = (body.get("stream_options") or {}).get("include_usage")
        return streamed(
            *chat_events(top | {"object": "chat.completion.chunk"}, message, reason, usage if asked else None)
        )
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return whole(top | {"object": "chat.completion", "choices": [choice], "usage": usage})


def chat_message(body: dict[str, Any]) -> dict[str, Any]:
    """The message that answers a chat request."""
    message: dict[str, Any] = {"role": "assistant", "content": TEXT, "refusal": None}
    shape = body.get("response_format") or {}
    tools = [tool["function"] for tool in body.get("tools") or []]
    choice = body.get("tool_choice")
    named = choice["function"]["name"] if isinstance(choice, dict) else None
    tool = wanted_tool(tools, named, body["messages"][-1]["role"] == "tool")
    if tool is not None:
        arguments = msgspec.json.encode(filled(tool["parameters"])).decode()
        call = {"id": f"call_{next(_ids)}", "type": "function"}
        message |= {
            "content": None,
            "tool_calls": [call | {"function": {"name": tool["name"], "arguments": arguments}}],
        }
    elif shape.get("type") == "json_schema":
        message["content"] = msgspec.json.encode(filled(shape["json_schema"]["schema"])).decode()
    return message


def wanted_tool(tools: list[dict[str, Any]], named: str | None, answered: bool) -> dict[str, Any] | None:
    """The tool to call: the one that was named, else the first; after a result only one that ends the matter."""
    last = [tool for tool in tools if tool["name"].startswith("final_")]
    others = [tool for tool in tools if tool not in last]
    if named is not None:
        return next(tool for tool in tools if tool["name"] == named)
    return next(iter(last if answered else others or last), None)


def chat_events(
    top: dict[str, Any], message: dict[str, Any], reason: str, usage: dict[str, int] | None
) -> Iterator[bytes]:
    """The same as a stream, its texts in small pieces, between the lines a comment."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return event(top | {"choices": [choice], "usage": None})

    yield chunk({"role": "assistant", "content": None if message.get("tool_calls") else "", "refusal": None})
    yield b": keep-alive\n\n"
    for index, call in enumerate(message.get("tool_calls", [])):
        yield chunk({"tool_calls": [{"index": index, **call, "function": call["function"] | {"arguments": ""}}]})
        for part in parts(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    for part in parts(message["content"] or ""):
        yield chunk({"content": part})
    yield chunk({}, reason)
    if usage is not None:
        yield event(top | {"choices": [], "usage": usage})
    yield event(b"[DONE]")


def completions(body: dict[str, Any]) -> Reply:
    """POST /completions."""
    top = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "gpt-3.5-turbo-instruct"}
    usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}

    def choice(text: str, reason: str | None) -> dict[str, Any]:
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}

    if not body.get("stream"):
        return whole(top | {"choices": [choice(TEXT, "stop")], "usage": usage})
    pieces = [event(top | {"choices": [choice(part, None)]}) for part in parts(TEXT)]
    asked = (body.get("stream_options") or {}).get("include_usage")
    last = [event(top | {"choices": [], "usage": usage})] if asked else []
    return streamed(*pieces, event(top | {"choices": [choice("", "stop")]}), *last, event(b"[DONE]"))


def embeddings(body: dict[str, Any]) -> Reply:
    """POST /embeddings."""
    usage = {"prompt_tokens": USAGE[0], "total_tokens": USAGE[0]}
    data = [{"object": "embedding", "index": 0, "embedding": EMBEDDING}]
    return whole({"object": "list", "model": "text-embedding-3-small", "data": data, "usage": usage})


_ENDPOINTS: dict[str, Callable[[dict[str, Any]], Reply]] = {
    "chat/completions": chat,
    "completions": completions,
    "embeddings": embeddings,
    "audio/transcriptions": lambda _: whole({"text": TEXT, "usage": HEARD}),
    "models": lambda _: whole({"object": "list", "data": [MODEL]}),
    "responses": lambda body: responses.answer(body, whole),
    "messages": lambda body: messages.answer(body, whole),
    "messages/count_tokens": lambda _: whole({"input_tokens": USAGE[0]}),
}  # fmt: skip
