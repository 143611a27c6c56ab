"""Owns sending an upstream's answer to the client as it comes, and recording it before its last byte leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from gateway.proxy.call import Call
from gateway.proxy.headers import Headers, to_client
from gateway.proxy.http1 import Answer
from gateway.proxy.sse import DoneWatch, Rewriter

Send = Callable[[Any], Awaitable[None]]
EVENT_STREAM = "text/event-stream"


def is_stream(response: Answer) -> bool:
    """Whether an answer is a stream of events that can be read as it passes."""
    kind = response.header(b"content-type")
    return kind.lower().startswith(EVENT_STREAM) and encoding_of(response) is None


def encoding_of(response: Answer) -> str | None:
    """The answer's content-encoding, None for plain."""
    encoding = response.header(b"content-encoding").strip().lower()
    return encoding if encoding not in ("", "identity") else None


async def relay(call: Call, response: Answer, send: Send, strip_usage: bool, hold: bool = False) -> None:
    """Passes the answer on and records it. Raises what reading raises when it breaks off.

    `hold`: somebody else may still be asked, so the headers too wait for the first piece of the body.
    """
    call.status, call.encoding = response.status, encoding_of(response)
    headers = to_client(response.headers, call.own_headers())
    if response.header(b"content-length") and not is_stream(response):
        await _whole(call, response, send, headers)
    else:
        await _pieces(call, response, send, headers, strip_usage, hold)


async def _whole(call: Call, response: Answer, send: Send, headers: Headers) -> None:
    """An answer of known length: read, recorded, sent with one write."""
    while piece := await response.piece():
        call.arrived(piece)
    call.record()
    call.begun = True
    await send_whole(send, response.status, headers, b"".join(call.pieces))


async def _pieces(call: Call, response: Answer, send: Send, headers: Headers, strip_usage: bool, hold: bool) -> None:
    """An answer of unknown length, each piece as it comes; the last one, or [DONE], after the record."""
    events = is_stream(response)
    done = DoneWatch() if events else None
    rewriter = Rewriter(strip_usage) if events and strip_usage else None
    if events:
        headers.append((b"x-accel-buffering", b"no"))
    begin = await response.piece() if hold else b""
    call.begun = True
    call.watch.await_more()
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send_pieces(call, response, send, done, rewriter, begin)


async def send_pieces(
    call: Call,
    response: Answer,
    send: Send,
    done: DoneWatch | None,
    rewriter: Rewriter | None,
    begin: bytes = b"",
) -> None:
    """Sends the body from here to its end, headers being out already. `begin` was read, but not sent."""
    watch = call.watch
    while piece := begin or await response.piece():
        begin = b""
        ended = response.ended
        if call.recorded:
            watch.await_more()
        else:
            call.arrived(piece)
        if ended or (done is not None and done.seen(piece)):
            call.record()
        out = rewriter.feed(piece) if rewriter is not None else piece
        if ended:
            break
        if out:
            watch.sending = True
            await send({"type": "http.response.body", "body": out, "more_body": True})
            watch.sending = False
    else:
        out = b""
    call.record()
    if rewriter is not None:
        out += rewriter.rest()
    await send({"type": "http.response.body", "body": out, "more_body": False})


async def send_whole(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Sends a body of known length."""
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
