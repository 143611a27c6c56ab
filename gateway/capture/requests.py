"""Owns taking a captured request apart and putting it together again. Pure functions.

Messages, or whatever a dialect calls its items, become blobs, byte for byte as the app wrote them; so do other large
fields (tools, schemas), of which the request keeps `{"$blob": hash}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.capture.blobs import BlobSet
from gateway.capture.dialects import dialect_of
from gateway.core import jsontext
from gateway.core.compression import decompress
from gateway.core.messages import text_of
from gateway.tasks.fingerprint import messages_of

POINTER = "$blob"
_LARGE = 512
_PREVIEW = 100
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True)
class StoredRequest:
    """`chat` is the request in the form of Chat Completions, `fields` and the hashes of its `items` what is kept."""

    chat: Mapping[str, Any]
    fields: dict[str, Any]
    items: list[bytes]


def take_apart(raw: bytes, encoding: str | None, blobs: BlobSet, endpoint: str) -> StoredRequest | None:
    """The request as it is stored; None when it is not a JSON object."""
    try:
        clear = decompress(raw, encoding)
        body = jsontext.decode(clear)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    dialect = dialect_of(endpoint)
    fields: dict[str, Any] = {}
    hashes: list[bytes] = []
    for name, value in _raw_fields(clear, body).items():
        if name == dialect.items and isinstance(body[name], list) and body[name]:
            hashes = [blobs.add(message) for message in _raw_items(value, body[name])]
        elif len(value) > _LARGE:
            fields[name] = {POINTER: blobs.add(value).hex()}
        else:
            fields[name] = body[name]
    return StoredRequest(dialect.as_chat(body), jsontext.storable(fields), hashes)


def pointers(fields: Mapping[str, Any]) -> dict[str, bytes]:
    """The fields of a stored request that lie in blobs, with their hashes."""
    return {
        name: bytes.fromhex(value[POINTER])
        for name, value in fields.items()
        if isinstance(value, Mapping) and set(value) == {POINTER}
    }


def _raw_fields(clear: bytes, body: dict[str, Any]) -> dict[str, bytes]:
    try:
        return {name: bytes(value) for name, value in _fields.decode(clear).items()}
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {name: jsontext.encode(value) for name, value in body.items()}


def _raw_items(value: bytes, items: list[Any]) -> list[bytes]:
    try:
        return [bytes(item) for item in _items.decode(value)]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return [jsontext.encode(item) for item in items]


def question_preview(body: Mapping[str, Any]) -> str:
    """The start of the last user message."""
    for message in reversed(messages_of(body)):
        if message.get("role") == "user":
            return shortened(_visible(message.get("content")))
    return ""


def answer_preview(message: Mapping[str, Any]) -> str:
    """The start of an answer: its text, else the tools that it calls, else its refusal."""
    text = _visible(message.get("content"))
    if not text.strip() and isinstance(message.get("tool_calls"), list):
        functions = [c.get("function") or {} for c in message["tool_calls"] if isinstance(c, Mapping)]
        text = ", ".join(f"{f.get('name')}({f.get('arguments')})" for f in functions if isinstance(f, Mapping))
    return shortened(text or str(message.get("refusal") or ""))


def shortened(text: str) -> str:
    """The first line or two, as PostgreSQL takes them."""
    short: str = jsontext.storable(" ".join(text[: _PREVIEW * 2].split())[:_PREVIEW])
    return short


def _visible(content: Any) -> str:
    whole = text_of(content)
    if whole is not None:
        return whole
    parts = content if isinstance(content, list) else [content]
    return " ".join(text_of([p]) or f"[{p.get('type', '?') if isinstance(p, Mapping) else '?'}]" for p in parts)
