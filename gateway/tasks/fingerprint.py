"""Owns how a call's prompt shape and input are recognised: pure functions of the request body.

Must not read the database: the hot path, the writer and the pipeline have to agree on every hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.core.messages import flatten, text_of

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_DIGITS = re.compile(r"\d+")
_SPACE = re.compile(r"\s+")
_LEADING = ("system", "developer")


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no spaces: equal values give equal bytes."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except UnicodeEncodeError:  # a lone surrogate: valid in JSON, not in UTF-8
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def messages_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The request's messages that have the form of one; a malformed body gives an empty list."""
    messages = request.get("messages")
    return [m for m in messages if isinstance(m, Mapping)] if isinstance(messages, list) else []


def system_text(request: Mapping[str, Any]) -> str:
    """The text of the leading system or developer messages, "" when the request starts otherwise.

    Only the leading ones: what an app inserts later belongs to one conversation, not to the prompt's shape.
    """
    texts = []
    for message in messages_of(request):
        if message.get("role") not in _LEADING:
            break
        texts.append(text_of(message.get("content")) or "")
    return "\n\n".join(texts).strip()


def response_format(request: Mapping[str, Any]) -> object:
    """The response format asked for; None for plain text, said or unsaid."""
    wanted = request.get("response_format")
    return None if isinstance(wanted, Mapping) and wanted.get("type") == "text" else wanted


def fingerprint(request: Mapping[str, Any]) -> bytes | None:
    """SHA-256 of the prompt's shape: system template, tools, response format. None without text and tools.

    Dates, numbers and white space are collapsed in the template: "Today is 2026-01-05" has one shape all year.
    """
    text, tools = system_text(request), request.get("tools")
    if not text and not tools:
        return None
    template = _SPACE.sub(" ", _DIGITS.sub("#", _DATE.sub("#", text)))
    return hashlib.sha256(canonical([template, tools or None, response_format(request)])).digest()


def input_hash(request: Mapping[str, Any]) -> bytes:
    """SHA-256 of everything the answer may depend on: all messages, tools, response format."""
    messages = [flatten(m) for m in messages_of(request)]
    return hashlib.sha256(canonical([messages, request.get("tools") or None, response_format(request)])).digest()


def conversation_hash(request: Mapping[str, Any]) -> bytes:
    """SHA-256 of what stays the same over a conversation's turns: everything up to its first user message."""
    opening = []
    for message in messages_of(request):
        opening.append(flatten(message))
        if message.get("role") == "user":
            break
    return hashlib.sha256(canonical(opening)).digest()
