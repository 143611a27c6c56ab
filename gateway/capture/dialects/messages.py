"""Owns Anthropic's Messages: content blocks, opened, added to and closed one by one in a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gateway.capture.answer import Answer, chat_choice, chat_tool_call, dicts_in, error_text
from gateway.capture.delta import joined
from gateway.capture.dialects.base import Assembly, text_parts
from gateway.core import jsontext

_TEXTS = {"text": "text"}
_REASONS = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "content_filter",
}  # fmt: skip


def as_chat(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """System, turns, tools and output format in the form of Chat Completions."""
    messages: list[dict[str, Any]] = []
    if request.get("system"):
        messages.append({"role": "system", "content": text_parts(request["system"], _TEXTS)})
    for message in dicts_in(request.get("messages")):
        messages += _turns(message)
    chat: dict[str, Any] = {"messages": messages}
    if request.get("tools"):
        chat["tools"] = [_tool(tool) for tool in dicts_in(request["tools"])]
    output = request.get("output_config")
    wanted = output.get("format") if isinstance(output, Mapping) else request.get("output_format")
    if isinstance(wanted, Mapping):
        fields = {name: value for name, value in wanted.items() if name != "type"}
        chat["response_format"] = {"type": wanted.get("type"), "json_schema": fields}
    return chat


def _turns(message: dict[str, Any]) -> list[dict[str, Any]]:
    """One turn; results of tools, which a chat has as turns of their own, before the rest of it."""
    role, blocks = message.get("role"), message.get("content")
    if not isinstance(blocks, list):
        return [{"role": role, "content": blocks}]
    results = [
        {
            "role": "tool",
            "tool_call_id": block.get("tool_use_id"),
            "content": text_parts(block.get("content"), _TEXTS),
        }
        for block in dicts_in(blocks)
        if block.get("type") == "tool_result"
    ]
    calls = [_call(block) for block in dicts_in(blocks) if block.get("type") == "tool_use"]
    apart = ("tool_result", "tool_use", "thinking", "redacted_thinking")
    rest = [block for block in blocks if not (isinstance(block, Mapping) and block.get("type") in apart)]
    turn: dict[str, Any] = {"role": role, "content": text_parts(rest, _TEXTS) or None}
    if calls:
        turn["tool_calls"] = calls
    return [*results, *([turn] if rest or calls or not results else [])]


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    return chat_tool_call(block.get("id"), block.get("name"), jsontext.encode(block.get("input") or {}).decode())


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    if "input_schema" not in tool:
        return tool
    function = {name: tool[name] for name in ("name", "description") if name in tool}
    return {"type": "function", "function": {**function, "parameters": tool["input_schema"]}}


def whole(response: dict[str, Any]) -> Answer:
    """Reads an answer that was not streamed."""
    error = error_text(response)
    choices = [_choice(response)] if isinstance(response.get("content"), list) else []
    return Answer(response, error is None and bool(choices), error, choices)


def _choice(message: Mapping[str, Any]) -> dict[str, Any]:
    blocks = dicts_in(message.get("content"))
    text = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    reason = message.get("stop_reason")
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    thinking = "\n".join(str(block["thinking"]) for block in blocks if block.get("thinking"))
    finish = _REASONS.get(reason, reason) if isinstance(reason, str) else None
    return chat_choice(text or None, finish, calls, reasoning=thinking)


class MessageAssembly(Assembly):
    """Collects blocks and their deltas. A tool's input comes as fragments of JSON text."""

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}

    def take(self, event: dict[str, Any]) -> None:
        kind, index, delta = event.get("type"), event.get("index"), event.get("delta")
        if kind == "message_start" and isinstance(event.get("message"), dict):
            self._message = dict(event["message"])
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(event.get("content_block"), dict):
            self._blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta" and isinstance(index, int) and isinstance(delta, dict):
            self._add(index, delta)
        elif kind == "message_delta":
            self._end(event)
        elif kind == "message_stop":
            self.done = True

    def _add(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks.setdefault(index, {})
        if delta.get("type") == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + str(delta.get("partial_json") or "")
        elif delta.get("type") == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        else:
            for name, value in delta.items():
                if name != "type":
                    block[name] = joined(block.get(name), value)

    def _end(self, event: dict[str, Any]) -> None:
        """The last event but one: why it stopped, what it cost, and whatever else is new at the top."""
        message = self._message = self._message if self._message is not None else {}
        for name, value in event.items():
            if name == "usage" and isinstance(value, dict):
                message["usage"] = {**(message.get("usage") or {}), **value}
            elif name == "delta" and isinstance(value, dict):
                message.update(value)
            elif name not in ("type", "delta", "usage"):
                message[name] = value

    def answer(self) -> Answer:
        if self._message is None:
            return Answer(None, whole=False, error=self.error)
        blocks = [self._block(index) for index in sorted(self._blocks)]
        response = {**self._message, "content": blocks}
        read = whole(response)
        ended = self.done and bool(response.get("stop_reason"))
        return Answer(response, ended and read.whole and self.error is None, self.error or read.error, read.choices)

    def _block(self, index: int) -> dict[str, Any]:
        block, fragments = self._blocks[index], self._inputs.get(index)
        if not fragments:
            return block
        try:
            return {**block, "input": json.loads(fragments)}
        except ValueError:  # cut in the middle: kept as far as it came
            return {**block, "input": fragments}
