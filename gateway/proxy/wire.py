"""Owns reading the little of a request that the hot path needs, and the one change made to it.

Must not decode messages before a route asks for them: a body may hold ten megabytes of image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.core import jsontext
from gateway.core.compression import ENCODINGS, TooLarge, decompress
from gateway.core.errors import StepdownError
from gateway.proxy.paths import CHAT, COMPLETIONS
from gateway.routing.request import RequestView

_NAMES = {CHAT: "chat.completions", COMPLETIONS: "completions"}
_USAGE = b'"stream_options":{"include_usage":true}'


class _Head(msgspec.Struct):
    model: Any = None
    stream: Any = None
    stream_options: Any = None
    metadata: Any = None


_head = msgspec.json.Decoder(_Head)


class ChatRequest(RequestView):
    """A request of Chat Completions, or of the older Completions: the bytes as they came, and the fields that decide
    its way. `model`: the deployment that an Azure path names, else the body's.

    Raises StepdownError (400) when the body is not a JSON object, or neither names a model.
    """

    __slots__ = ("_given", "_named", "_options", "endpoint", "model", "name", "raw", "stream", "wants_usage")
    method, capture, whole = "POST", "full", True

    def __init__(
        self, raw: bytes, encoding: str | None, limit: int, endpoint: str = CHAT, deployment: str = ""
    ) -> None:
        super().__init__()
        self.raw = raw
        self.endpoint = endpoint
        self.name = _NAMES[endpoint]
        self._given = _clear(raw, encoding, limit) if encoding else raw
        head = self._read_head()
        self._named = head.model
        self.model: str = deployment or (head.model if isinstance(head.model, str) else "")
        if not self.model:
            raise StepdownError(
                400, "model_missing", "The request names no model.", hint="Send `model` as a string.", param="model"
            )
        self.stream: bool = head.stream is True
        self._options: dict[str, Any] = head.stream_options if isinstance(head.stream_options, dict) else {}
        self.wants_usage: bool = self._options.get("include_usage") is True
        if isinstance(head.metadata, Mapping) and isinstance(task := head.metadata.get("task"), str):
            self.metadata_task = task

    def _read_head(self) -> _Head:
        try:
            return _head.decode(self._given)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        body = self.body  # a second opinion: it takes lone surrogates, and the upstream may as well
        return _Head(*(body.get(name) for name in ("model", "stream", "stream_options", "metadata")))

    def _decode(self) -> Mapping[str, Any]:
        try:
            body = jsontext.decode(self._given)
        except ValueError as error:
            raise StepdownError(
                400, "malformed_json", f"The request body is not JSON: {error}.", hint="Send a JSON object."
            ) from None
        if not isinstance(body, dict):
            raise StepdownError(
                400, "malformed_json", f"The request body is a JSON {type(body).__name__}.", hint="Send a JSON object."
            )
        return body

    @property
    def for_students(self) -> bool:
        """Whether a student could answer it."""
        return self.endpoint == CHAT

    def outgoing(self, model: str | None, ask_usage: bool) -> tuple[bytes, bool, bool]:
        """The body to send on, whether it still has its content-encoding, and whether it asks for usage.

        The very bytes that came, save for what has to be changed: the model where it has to be another one (None:
        what it says does not count), and `stream_options.include_usage` where we ask for usage. A compressed body is
        not opened for usage.
        """
        body, encoded = self.raw, self._given is not self.raw
        asked = ask_usage and not encoded
        if asked:
            body = self._with_usage()
        if model is not None and model != self._named:
            body, encoded = jsontext.changed(self._given if encoded else body, model=model), False
        return body, encoded, asked

    def _with_usage(self) -> bytes:
        if b'"stream_options"' not in self.raw:
            return self.raw.rstrip()[:-1] + b"," + _USAGE + b"}"
        return jsontext.changed(self.raw, stream_options=self._options | {"include_usage": True})


def _clear(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding not in ENCODINGS:
        raise StepdownError(
            415,
            "content_encoding_unknown",
            f"The request body is encoded as {encoding[:50]!r}.",
            hint="Send it as gzip, deflate, zstd or plain.",
        )
    try:
        return decompress(body, encoding, limit)
    except TooLarge:
        raise too_large(limit) from None
    except ValueError as error:
        raise StepdownError(
            400, "body_damaged", f"The {encoding} request body cannot be read: {error}.", hint="Send it again."
        ) from None


def too_large(limit: int) -> StepdownError:
    """413 for a body beyond STEPDOWN_MAX_BODY_MB."""
    return StepdownError(
        413,
        "body_too_large",
        f"The request body is larger than {limit // 1_000_000} MB.",
        hint="Send less, or raise STEPDOWN_MAX_BODY_MB.",
    )
