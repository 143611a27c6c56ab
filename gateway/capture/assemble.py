"""Owns making one answer of what crossed the wire: streamed pieces become the non-streamed form.

Must not decide what is kept. An answer that is not whole is never made to look so.
"""

from __future__ import annotations

from gateway.capture.answer import Answer
from gateway.capture.dialects import dialect_of
from gateway.core import jsontext
from gateway.core.compression import decompress
from gateway.core.sse import BOM, Events, data_of

CHAT = "chat.completions"
STREAM_STARTS = tuple(bom + field for bom in (b"", BOM) for field in (b"data:", b"event:", b"id:", b"retry:", b":"))


def received(body: bytes, encoding: str | None, endpoint: str = CHAT) -> Answer:
    """The answer in the bytes that a client was sent, `encoding` being their content-encoding."""
    try:
        clear = decompress(body, encoding)
    except ValueError as error:
        return Answer(None, whole=False, error=f"the {encoding} answer cannot be read: {error}")
    # The bytes decide, not the request: one that asked for a stream may be answered without.
    if clear.lstrip().startswith(STREAM_STARTS):
        return stream(clear, endpoint)
    return whole_body(clear, endpoint)


def whole_body(body: bytes, endpoint: str = CHAT) -> Answer:
    """Reads a non-streamed answer."""
    try:
        response = jsontext.decode(body)
    except ValueError as bad:
        return Answer(None, whole=False, error=f"the answer is not JSON: {bad}" if body else "the answer is empty")
    if not isinstance(response, dict):
        return Answer(None, whole=False, error="the answer is not a JSON object")
    return dialect_of(endpoint).whole(response)


def stream(body: bytes, endpoint: str = CHAT) -> Answer:
    """Assembles a streamed answer from its server-sent events."""
    assembly = dialect_of(endpoint).assembly()
    events = Events()
    for event in [*events.feed(body), events.rest()]:
        data = data_of(event)
        if data is not None:
            assembly.add(data)
    return assembly.answer()
