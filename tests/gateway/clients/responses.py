"""The provider's Responses API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import msgspec

from tests.gateway.clients.shapes import TEXT, USAGE, filled, parts
from tests.gateway.world import Reply, streamed

_ids = count(1)


def answer(body: dict[str, Any], whole: Callable[[Any], Reply]) -> Reply:
    """POST /responses."""
    response = made(f"resp_{next(_ids)}", output(body), body)
    return streamed(*events(response)) if body.get("stream") else whole(response)


def stored(path: str) -> dict[str, Any]:
    """GET /responses/{id}, and what hangs under it."""
    id, _, rest = path.partition("/")
    if rest == "input_items":
        item = {"id": "msg_in", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        return {"object": "list", "data": [item], "first_id": "msg_in", "last_id": "msg_in", "has_more": False}
    return made(id, [message(TEXT)], {})


def made(id: str, items: list[dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    """A finished response object."""
    return {
        "id": id, "object": "response", "created_at": 1, "status": "completed", "error": None,
        "incomplete_details": None, "instructions": body.get("instructions"), "model": "gpt-4o-2024-08-06",
        "metadata": body.get("metadata") or {}, "output": items, "parallel_tool_calls": True, "temperature": 1.0,
        "tool_choice": "auto", "tools": body.get("tools") or [], "top_p": 1.0, "text": {"format": {"type": "text"}},
        "usage": {
            "input_tokens": USAGE[0], "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": USAGE[1], "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": sum(USAGE),
        },
    }  # fmt: skip


def message(text: str) -> dict[str, Any]:
    """An output item with a text."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {
        "id": f"msg_{next(_ids)}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": content,
    }


def output(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What answers a request: a tool's call while no result of one is there, a filled schema, or TEXT."""
    sent = body.get("input")
    answered = isinstance(sent, list) and sent[-1].get("type") == "function_call_output"
    if body.get("tools") and not answered:
        tool = body["tools"][0]
        arguments = msgspec.json.encode(filled(tool["parameters"])).decode()
        ids = {"id": f"fc_{next(_ids)}", "call_id": f"call_{next(_ids)}"}
        return [{"type": "function_call", "status": "completed", "name": tool["name"], "arguments": arguments, **ids}]
    shape = (body.get("text") or {}).get("format") or {}
    if shape.get("type") == "json_schema":
        return [message(msgspec.json.encode(filled(shape["schema"])).decode())]
    return [message(TEXT)]


def events(response: dict[str, Any]) -> Iterator[bytes]:
    """The response as a stream of named, numbered events."""
    numbers = count()

    def named(type: str, **fields: Any) -> bytes:
        data = msgspec.json.encode({"type": type, "sequence_number": next(numbers), **fields})
        return b"event: %s\ndata: %s\n\n" % (type.encode(), data)

    begun = response | {"status": "in_progress", "output": [], "usage": None}
    yield named("response.created", response=begun)
    yield named("response.in_progress", response=begun)
    for index, item in enumerate(response["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        yield named("response.output_item.added", output_index=index, item=item | {"status": "in_progress"} | empty)
        if item["type"] == "function_call":
            for part in parts(item["arguments"]):
                yield named("response.function_call_arguments.delta", **at, delta=part)
            yield named("response.function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        else:
            (content,) = item["content"]
            at["content_index"] = 0
            yield named("response.content_part.added", **at, part=content | {"text": ""})
            for part in parts(content["text"]):
                yield named("response.output_text.delta", **at, delta=part, logprobs=[])
            yield named("response.output_text.done", **at, text=content["text"], logprobs=[])
            yield named("response.content_part.done", **at, part=content)
        yield named("response.output_item.done", output_index=index, item=item)
    yield named("response.completed", response=response)
