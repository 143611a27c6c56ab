"""Owns reading and writing JSON that came from outside: fast where it is clean, tolerant where it is not.

Providers and apps send what RFC 8259 allows and UTF-8 does not: halves of surrogate pairs, as when a stream cuts an
emoji in two. Must not be used where bytes only pass through.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode(data: bytes) -> Any:
    """The value. Raises ValueError when it is not JSON."""
    try:
        try:
            return msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def encode(value: Any) -> bytes:
    """JSON of a decoded value. Halves of a surrogate pair that came apart are joined; a lone one stays escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(joined(value), separators=(",", ":")).encode()


def changed(data: bytes, **values: Any) -> bytes:
    """A JSON object with some fields set; where it is clean the others keep their bytes. Raises ValueError."""
    try:
        fields = _fields.decode(data) | {name: msgspec.Raw(msgspec.json.encode(v)) for name, v in values.items()}
        return msgspec.json.encode(fields)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return json.dumps(decode(data) | values, separators=(",", ":")).encode()


def joined(value: Any) -> Any:
    """The value with surrogate pairs joined again: escaped side by side they read as one character."""
    return json.loads(json.dumps(value))


def storable(value: Any) -> Any:
    """The value as PostgreSQL takes it: NUL and lone surrogates in any text become U+FFFD."""
    if isinstance(value, str):
        return value.replace("\0", "�").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): storable(item) for name, item in value.items()}
    return value
