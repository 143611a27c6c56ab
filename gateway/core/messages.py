"""Owns the one normalisation of chat messages that fingerprints, training and student requests share.

Must not change what is relayed: the upstream always gets the bytes that the app sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
