"""Owns adding up the deltas of one streamed choice into its message. Must not know about events or bytes."""

from __future__ import annotations

from typing import Any

import msgspec

_KNOWN = ("role", "content", "tool_calls", "function_call")


class Message:
    """One choice in the making."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._tools: list[dict[str, Any]] = []
        self._logprobs: dict[str, list[Any]] | None = None
        self._extra: dict[str, Any] = {}
        self._finish_reason: str | None = None

    def add(self, choice: dict[str, Any]) -> None:
        """Takes one chunk's part of this choice."""
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta)
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict):
            known = self._logprobs = self._logprobs or {}
            for name, entries in logprobs.items():
                if isinstance(entries, list):
                    known.setdefault(name, []).extend(entries)
        for name, value in choice.items():
            if name not in ("index", "delta", "logprobs", "finish_reason") and value is not None:
                self._extra[name] = value
        self._finish_reason = choice.get("finish_reason") or self._finish_reason

    def choice(self, index: int) -> dict[str, Any]:
        """The choice as it would have come without streaming."""
        message = dict(self._message)
        if self._tools:
            message["tool_calls"] = [{k: v for k, v in tool.items() if k != "index"} for tool in self._tools]
        return {
            "index": index,
            "message": message,
            "logprobs": self._logprobs,
            "finish_reason": self._finish_reason,
            **self._extra,
        }

    def _delta(self, delta: dict[str, Any]) -> None:
        message = self._message
        if isinstance(delta.get("role"), str) and delta["role"]:
            message["role"] = delta["role"]
        if delta.get("content") is not None:
            message["content"] = joined(message["content"], delta["content"])
        for call in delta.get("tool_calls") or []:
            if isinstance(call, dict):
                _add_call(self._tool(call), call)
        if isinstance(delta.get("function_call"), dict):
            _add_function(message.setdefault("function_call", {"name": "", "arguments": ""}), delta["function_call"])
        for name, value in delta.items():
            if name not in _KNOWN and value is not None:
                message[name] = joined(message.get(name), value)

    def _tool(self, call: dict[str, Any]) -> dict[str, Any]:
        """The tool call that a delta continues, or a new one.

        Providers repeat an index for parallel calls or leave it out, and some repeat the id without a name.
        """
        index, id = call.get("index"), call.get("id")
        function = call.get("function")
        named = isinstance(function, dict) and bool(function.get("name"))
        if index is None:
            same = [t for t in self._tools if id and t.get("id") == id] or (self._tools[-1:] if not id else [])
        else:
            same = [t for t in self._tools if t["index"] == index]
        if same and not (id and named and same[-1].get("id") not in (None, id)):
            return same[-1]
        fresh: dict[str, Any] = {"index": index, "type": "function", "function": {"name": "", "arguments": ""}}
        self._tools.append(fresh)
        return fresh


def _add_call(known: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        if name == "function" and isinstance(value, dict):
            _add_function(known["function"], value)
        elif name != "index" and value is not None and (name != "id" or not known.get("id")):
            known[name] = value


def _add_function(known: dict[str, Any], delta: dict[str, Any]) -> None:
    known["name"] = known["name"] or delta.get("name") or ""
    arguments = delta.get("arguments")
    if arguments is not None:
        # Ollama and others send the whole object instead of its text.
        known["arguments"] += arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def joined(known: Any, more: Any) -> Any:
    """Two fragments of one field: texts and lists are appended, anything else is replaced."""
    if known is None:
        return more
    if isinstance(known, str) and isinstance(more, str):
        return known + more
    if isinstance(known, list) or isinstance(more, list):
        return _parts(known) + _parts(more)
    return more


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) else [content]
