"""Owns OpenAI's Responses: items in, items out; its stream ends with the response as it is without streaming."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.capture.answer import Answer, chat_choice, chat_tool_call, dicts_in, error_text
from gateway.capture.dialects.base import Assembly, text_parts

_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_REMEMBERED = ("previous_response_id", "conversation", "prompt")
_WHOLE = ("completed", "complete")
_REASONS = {"max_output_tokens": "length"}
# Which event adds to which field of an item: of the item itself, or of a part in a list of it, by the part's index.
_DELTAS = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "text"),
}
_ITEM_DELTAS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.code_interpreter_call_code.delta": "code",
}


def as_chat(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Instructions, items, tools and text format in the form of Chat Completions."""
    items = request.get("input")
    messages: list[dict[str, Any]] = []
    if isinstance(request.get("instructions"), str):
        messages.append({"role": "system", "content": request["instructions"]})
    # What the provider remembers is not in the request: an item that is no message stands for it, so that hashes tell
    # it apart, and half a conversation is never learned from.
    messages += [{"type": name, name: request[name]} for name in _REMEMBERED if request.get(name)]
    if isinstance(items, str):
        messages.append({"role": "user", "content": items})
    for item in dicts_in(items):
        messages += _message(item)
    chat: dict[str, Any] = {"messages": messages}
    if request.get("tools"):
        chat["tools"] = [_tool(tool) for tool in dicts_in(request["tools"])]
    text = request.get("text")
    wanted = text.get("format") if isinstance(text, Mapping) else None
    if isinstance(wanted, Mapping):
        fields = {name: value for name, value in wanted.items() if name != "type"}
        kind = wanted.get("type")
        chat["response_format"] = {"type": kind} | ({"json_schema": fields} if kind == "json_schema" else {})
    return chat


def _message(item: dict[str, Any]) -> list[dict[str, Any]]:
    kind = item.get("type") or "message"
    if kind == "message":
        return [{"role": item.get("role"), "content": text_parts(item.get("content"), _TEXTS)}]
    if kind == "function_call":
        call = chat_tool_call(item.get("call_id"), item.get("name"), str(item.get("arguments") or ""))
        return [{"role": "assistant", "content": None, "tool_calls": [call]}]
    if kind == "function_call_output":
        content = text_parts(item.get("output"), _TEXTS)
        return [{"role": "tool", "tool_call_id": item.get("call_id"), "content": content}]
    # Reasoning is not a turn. What is left has no counterpart in a chat: it is kept, so that hashes tell it apart.
    return [] if kind == "reasoning" else [item]


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function" or "function" in tool:
        return tool
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}


def whole(response: dict[str, Any]) -> Answer:
    """Reads a response. One that is still queued or in progress is not whole."""
    error = error_text(response)
    choices = [_choice(response)] if isinstance(response.get("output"), list) else []
    ended = response.get("status") in (*_WHOLE, "incomplete")
    return Answer(response, error is None and bool(choices) and ended, error, choices)


def _choice(response: Mapping[str, Any]) -> dict[str, Any]:
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    calls = []
    for item in dicts_in(response.get("output")):
        if item.get("type") == "function_call":
            calls.append(chat_tool_call(item.get("call_id"), item.get("name"), str(item.get("arguments") or "")))
        elif item.get("type") == "reasoning":
            told = (*dicts_in(item.get("summary")), *dicts_in(item.get("content")))
            thoughts += [str(part["text"]) for part in told if part.get("text")]
        elif item.get("type") == "message":
            for part in dicts_in(item.get("content")):
                texts.append(str(part.get("text") or ""))
                refusals.append(str(part.get("refusal") or ""))
    return chat_choice(
        "".join(texts) or None,
        _finish_reason(response, bool(calls)),
        calls,
        refusal="".join(refusals),
        reasoning="\n".join(thoughts),
    )


def _finish_reason(response: Mapping[str, Any], calls: bool) -> str | None:
    if response.get("status") in _WHOLE:
        return "tool_calls" if calls else "stop"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return _REASONS.get(reason, reason) if isinstance(reason, str) else None


class ResponseAssembly(Assembly):
    """Takes the response from the last event; until then collects items and their deltas."""

    def __init__(self) -> None:
        super().__init__()
        self._response: dict[str, Any] | None = None
        self._items: dict[int, dict[str, Any]] = {}
        self._ended = False

    def take(self, event: dict[str, Any]) -> None:
        kind, response = event.get("type"), event.get("response")
        if kind == "error":
            self.error = self.error or str(event.get("message") or event)[:500]
        if isinstance(response, dict):
            self._response = response
            self._ended = self._ended or kind in _ENDS
        index, item = event.get("output_index"), event.get("item")
        if not isinstance(index, int):
            return
        if isinstance(item, dict):
            self._items[index] = item
        elif isinstance(event.get("delta"), str) and index in self._items:
            self._delta(self._items[index], str(kind), event)

    @staticmethod
    def _delta(item: dict[str, Any], kind: str, event: dict[str, Any]) -> None:
        if kind in _ITEM_DELTAS:
            field = _ITEM_DELTAS[kind]
            item[field] = str(item.get(field) or "") + event["delta"]
        elif kind in _DELTAS:
            where, index_name, part_type, field = _DELTAS[kind]
            parts, index = item.get(where), event.get(index_name)
            if not isinstance(parts, list):
                parts = item[where] = []
            if not isinstance(index, int) or not 0 <= index <= len(parts):
                return
            if index == len(parts):
                parts.append({"type": part_type, field: ""})
            parts[index][field] = str(parts[index].get(field) or "") + event["delta"]

    def answer(self) -> Answer:
        response = self._response
        if response is None:
            return Answer(None, whole=False, error=self.error)
        if self._items and not response.get("output"):
            response = {**response, "output": [self._items[index] for index in sorted(self._items)]}
        read = whole(response)
        error = self.error or read.error
        return Answer(response, self._ended and read.whole and error is None, error, read.choices)
