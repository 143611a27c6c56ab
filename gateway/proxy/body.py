"""Owns reading a request body up to the limit. Must not look inside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from gateway.proxy.headers import ClientHeaders
from gateway.proxy.wire import too_large

Receive = Callable[[], Awaitable[Any]]
_DRAINED = 10
"""How many times the limit we read and throw away, so that a client that is still sending hears our 413."""


async def read_body(receive: Receive, headers: ClientHeaders, limit: int) -> bytes | None:
    """The whole body; None when the client went away. Raises StepdownError (413) beyond `limit` bytes."""
    if headers.length is not None and headers.length > limit:
        if not headers.expects:  # a client that asks before it sends need not send at all
            await _drain(receive, limit * _DRAINED)
        raise too_large(limit)
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
        size += len(pieces[-1])
        if size > limit:
            if more:
                await _drain(receive, limit * _DRAINED)
            raise too_large(limit)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _drain(receive: Receive, at_most: int) -> None:
    left = at_most
    while left > 0:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return
        left -= len(message.get("body", b""))
