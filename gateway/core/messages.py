"""Owns the one normalisation of chat messages that fingerprints, training and student requests share.

Must not change what is relayed: the upstream always gets the bytes that the app sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")


def text_of(content: object) -> str | None:
    """The text of a message's `content`: text parts joined by newlines, `null` as the empty string.

    None when there is anything but text in it (an image, audio, a file).
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            return None
    return "\n".join(texts)


def flatten(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its content as plain text where it is text alone; otherwise a plain copy."""
    flat = dict(message)
    text = text_of(message.get("content"))
    if text is not None:
        flat["content"] = text
    return flat


def plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """What of a message is learned from, sampled from and sent to a student: content as text, and who says what.

    Whatever else an app or a provider put there (reasoning, refusals, annotations, an index) is left out, so that
    training and serving show a model the same. Content that is not text alone is left as it is.
    """
    flat = flatten(message)
    kept = {name: flat[name] for name in _FIELDS if flat.get(name) not in (None, [])}
    if isinstance(calls := kept.pop("tool_calls", None), list):
        kept["tool_calls"] = [_tool_call(call) for call in calls if isinstance(call, Mapping)]
    return kept


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    told = function if isinstance(function, Mapping) else {}
    named = {name: told[name] for name in ("name", "arguments") if told.get(name) is not None}
    return {"id": call.get("id") or "", "type": "function", "function": named}
