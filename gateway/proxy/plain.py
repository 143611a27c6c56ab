"""Owns requests of every other endpoint: sent on as they came, save for the model's name. No student answers them.

Must not decode more of a body than the model and whether a stream is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.core import jsontext
from gateway.core.compression import decompress
from gateway.proxy.paths import MESSAGES, RESPONSES, is_known, name_of
from gateway.routing.request import RequestView


class _Head(msgspec.Struct):
    model: Any = None
    stream: Any = None
    metadata: Any = None
    previous_response_id: Any = None
    conversation: Any = None


_WHOLE = (RESPONSES, MESSAGES)
_head = msgspec.json.Decoder(_Head)
# A part of a form that is a field of this name, not a file: its value is one line. A file may be called so too.
_FORM_MODEL = re.compile(rb'(?<=[; ])name="?model"?[^\S\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]{1,200})\r\n')
_FORM_STREAM = re.compile(rb'(?<=[; ])name="?stream"?[^\S\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\ntrue\r\n', re.IGNORECASE)


class PlainRequest(RequestView):
    """A request with what can be told of it. `model` is empty where none is named, or the body is not ours to read:
    whether it is a good request is for the upstream to say."""

    __slots__ = ("_clear", "_form", "_named", "_refers", "endpoint", "method", "model", "raw", "stream", "wants_usage")
    for_students = False

    def __init__(
        self,
        method: str,
        endpoint: str,
        raw: bytes,
        kind: str,
        encoding: str | None,
        limit: int,
        deployment: str = "",
    ) -> None:
        super().__init__({})
        self.method = method
        self.endpoint = endpoint
        self.raw = raw
        self.wants_usage = True
        self._refers = False
        self._clear = _decompressed(raw, encoding, limit) if encoding else raw
        self._form: re.Match[bytes] | None = None
        if kind.startswith("multipart/form-data"):
            found = self._form = _FORM_MODEL.search(self._clear)
            self._named = found[1].decode(errors="replace").strip() if found else ""
            self.stream = _FORM_STREAM.search(self._clear) is not None
        else:
            head = _read(self._clear)
            self._named = head.model if isinstance(head.model, str) else ""
            if isinstance(head.metadata, Mapping) and isinstance(task := head.metadata.get("task"), str):
                self.metadata_task = task
            self.stream = head.stream is True
            self._refers = head.previous_response_id is not None or head.conversation is not None
        self.model = deployment or self._named

    @property
    def portable(self) -> bool:
        """No: a question about what one provider has stored, or one that names no model."""
        return self.method == "POST" and bool(self.model) and not self._refers

    @property
    def name(self) -> str:
        """The endpoint as calls are recorded under."""
        return name_of(self.endpoint)

    @property
    def whole(self) -> bool:
        """Whether the writer can read what it asks and what it is answered."""
        return self.endpoint in _WHOLE and self.method == "POST"

    @property
    def capture(self) -> str:
        """The most that is kept of it."""
        if self.whole:
            return "full"
        return "metadata" if is_known(self.endpoint) else "off"

    def outgoing(self, model: str | None, ask_usage: bool) -> tuple[bytes, bool, bool]:
        """The body to send on, whether it still has its content-encoding, and whether we asked for usage: never."""
        assert not ask_usage, "`wants_usage` keeps everybody from it"
        if not model or not self.model or model == self._named:
            return self.raw, True, False
        if self._form is not None:
            start, end = self._form.span(1)
            return self._clear[:start] + model.encode() + self._clear[end:], False, False
        try:
            return jsontext.changed(self._clear, model=model), False, False
        except ValueError:  # an Azure path named the model, and this is no JSON
            return self.raw, True, False


def _read(body: bytes) -> _Head:
    try:
        return _head.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Head()


def _decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    try:
        return decompress(body, encoding, limit)
    except ValueError:
        return b""
