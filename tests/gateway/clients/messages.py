"""The provider's Messages API, as Anthropic speaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import msgspec

from tests.gateway.clients.shapes import TEXT, USAGE, filled, parts
from tests.gateway.world import Reply, streamed

_ids = count(1)


def answer(body: dict[str, Any], whole: Callable[[Any], Reply]) -> Reply:
    """POST /messages."""
    content = content_of(body)
    made = {
        "id": f"msg_{next(_ids)}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": [content], "stop_reason": "tool_use" if content["type"] == "tool_use" else "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": USAGE[0], "output_tokens": USAGE[1]},
    }  # fmt: skip
    return streamed(*events(made)) if body.get("stream") else whole(made)


def content_of(body: dict[str, Any]) -> dict[str, Any]:
    """The block that answers: a tool's use while no result of one is there, else TEXT."""
    sent = body["messages"][-1]["content"]
    answered = isinstance(sent, list) and any(block["type"] == "tool_result" for block in sent)
    if body.get("tools") and not answered:
        tool = body["tools"][0]
        use = {"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": tool["name"]}
        return use | {"input": filled(tool["input_schema"])}
    return {"type": "text", "text": TEXT}


def events(made: dict[str, Any]) -> Iterator[bytes]:
    """The message as a stream of named events, a ping among them."""

    def named(type: str, **fields: Any) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (type.encode(), msgspec.json.encode({"type": type, **fields}))

    usage = made["usage"]
    begun = made | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield named("message_start", message=begun)
    for index, block in enumerate(made["content"]):
        is_tool = block["type"] == "tool_use"
        empty = {"input": {}} if is_tool else {"text": ""}
        yield named("content_block_start", index=index, content_block=block | empty)
        yield named("ping")
        text = msgspec.json.encode(block["input"]).decode() if is_tool else block["text"]
        kind, name = ("input_json_delta", "partial_json") if is_tool else ("text_delta", "text")
        for part in parts(text):
            yield named("content_block_delta", index=index, delta={"type": kind, name: part})
        yield named("content_block_stop", index=index)
    delta = {"stop_reason": made["stop_reason"], "stop_sequence": None}
    yield named("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]})
    yield named("message_stop")
