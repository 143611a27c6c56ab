"""Owns what is changed in a stream as it passes: our usage chunk taken out, a student's chunks put as OpenAI puts them.

Whatever is not changed keeps its bytes. Must not buffer more than one event.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gateway.core.sse import Events, data_of
from gateway.proxy.dialect import as_openai

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LAST = rb"(?:message_stop|response\.(?:completed|incomplete|failed))"
_END = re.compile(
    rb"[\r\n](?:data: ?\[DONE\]|(event: ?" + _LAST + rb"(?=[\r\n])|data: ?\{\"type\": ?\"" + _LAST + rb"\"))"
)
_BLANK = re.compile(rb"\n\r?\n|\r\r")
_KEPT = 48


class DoneWatch:
    """Notices the piece with which a stream's last event is whole, wherever it was cut: `data: [DONE]`, Anthropic's
    `message_stop`, or the event with which a response ends. Clients stop reading there."""

    def __init__(self) -> None:
        self._tail = b"\n"
        self._closing = False

    def seen(self, piece: bytes) -> bool:
        """Whether the end has arrived with this piece. Inside JSON no line can begin, so content cannot forge it."""
        window = self._tail + piece
        self._tail = window[-_KEPT:]
        if self._closing:
            return _BLANK.search(window) is not None
        end = _END.search(window)
        if end is None or not end[1]:
            return end is not None
        # The event has begun that is the last one: whole it is at the blank line after it.
        self._closing = True
        self._tail = b""
        return self.seen(window[end.end() :])


class Rewriter:
    """Passes a stream on event by event, without the usage chunk where wanted; with `model`, a student's, under it."""

    def __init__(self, strip_usage: bool, model: str | None = None) -> None:
        self._strip_usage = strip_usage
        self._model = model
        self._events = Events()

    def feed(self, piece: bytes) -> bytes:
        """What can be sent on now."""
        return b"".join([self._event(event) for event in self._events.feed(piece)])

    def rest(self) -> bytes:
        """What is left when the stream has ended."""
        rest = self._events.rest()
        return self._event(rest) if rest else b""

    def _event(self, event: bytes) -> bytes:
        # Most events need no look inside: only ours to strip has usage without choices.
        if self._model is None and b'"usage"' not in event:
            return event
        data = data_of(event)
        if data is None:
            return event
        try:
            chunk = _fields.decode(data)
            if self._strip_usage and is_usage_chunk(chunk):
                return b""
            if self._model is None or "model" not in chunk:
                return event
            return b"data: " + msgspec.json.encode(as_openai(msgspec.json.decode(data), self._model)) + b"\n\n"
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return event


def is_usage_chunk(chunk: dict[str, Any]) -> bool:
    """Whether a chunk is the extra one that `include_usage` adds: usage, and an empty list of choices."""
    usage, choices = bytes(chunk.get("usage", b"null")), bytes(chunk.get("choices", b""))
    return usage != b"null" and b"".join(choices.split()) == b"[]"
