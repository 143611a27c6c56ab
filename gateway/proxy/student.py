"""Owns letting a student answer: its request, the checks of its answer, its way back to the client.

Must send nothing to the client before the student's answer is known to be usable: until then the upstream can
still take over without anybody noticing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.capture import assemble
from gateway.core import jsontext
from gateway.core.messages import plain
from gateway.core.settings import settings
from gateway.core.sse import Events, data_of
from gateway.proxy.answer import EVENT_STREAM, Send, is_stream, send_pieces, send_whole
from gateway.proxy.call import Call
from gateway.proxy.client import FAILURES, UpstreamClient, endpoint
from gateway.proxy.dialect import as_openai
from gateway.proxy.headers import Headers
from gateway.proxy.http1 import Answer
from gateway.proxy.paths import CHAT
from gateway.proxy.sse import DoneWatch, Rewriter
from gateway.routing.snapshot import StudentInForce
from gateway.tasks.fingerprint import messages_of, response_format

_TAKEN = (
    "temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty", "logit_bias", "tools",
    "tool_choice", "stream",
)  # fmt: skip
"""What the engine takes and the student was judged with. The response format is checked, not enforced: the
evidence for the student is about what it says freely."""
_LIMITS = ("max_completion_tokens", "max_tokens")


class _Unusable(Exception):
    """The student's answer cannot be given to the client; the text is the reason."""


@dataclass(frozen=True)
class _Attempt:
    call: Call
    student: StudentInForce
    send: Send
    timeout_s: float

    @property
    def held(self) -> bool:
        """Whether the whole answer has to be seen before any of it is sent: JSON was asked for."""
        return response_format(self.call.request.body) is not None

    @property
    def limit_is_ours(self) -> bool:
        """Whether the app would have allowed a longer answer than the student is allowed to give."""
        asked, longest = asked_limit(self.call.request.body), self.student.manifest.get("max_new_tokens")
        return longest is not None and (asked is None or asked > longest)


def engine_key() -> str:
    """The serving engine's API key, "" when it has none."""
    try:
        return (settings().secrets_dir / "engine.key").read_text().strip()
    except FileNotFoundError:
        return ""


def student_request(body: Mapping[str, Any], student: StudentInForce) -> dict[str, Any]:
    """The request as the engine takes it: messages as in training, no field it does not know.

    An answer is no longer than the longest that the student was judged with.
    """
    request: dict[str, Any] = {"model": student.name, "messages": [plain(m) for m in messages_of(body)]}
    request |= {name: body[name] for name in _TAKEN if body.get(name) is not None}
    limits = [limit for limit in (asked_limit(body), student.manifest.get("max_new_tokens")) if limit]
    if limits:
        request["max_tokens"] = min(limits)
    if body.get("stream") is True:
        request["stream_options"] = {"include_usage": True}
    return request


def asked_limit(body: Mapping[str, Any]) -> int | None:
    """The longest answer that the app wants, in tokens; None when it does not say."""
    limits = [body[name] for name in _LIMITS if isinstance(body.get(name), int)]
    return min(limits) if limits else None


async def answer(
    call: Call, student: StudentInForce, client: UpstreamClient, send: Send, timeout_s: float
) -> str | None:
    """Lets the student answer. Returns None when it did, else why the upstream has to.

    Raises what reading raises when the engine breaks off after something was sent.
    """
    attempt = _Attempt(call, student, send, timeout_s)
    body = jsontext.encode(student_request(call.request.body, student))
    headers: Headers = [(b"content-type", b"application/json"), (b"accept-encoding", b"identity")]
    if engine_key():
        headers.append((b"authorization", f"Bearer {engine_key()}".encode()))
    assert student.base_url is not None
    response: Answer | None = None
    try:
        async with asyncio.timeout(timeout_s):
            call.sent()
            response = await client.ask(endpoint(student.base_url, CHAT, ""), headers, body)
            if response.status != 200:
                return f"student_http_{response.status}"
            begin = await (_read_whole(attempt, response) if _buffered(attempt, response) else _first(call, response))
        await _pass_on(attempt, response, begin)
    except _Unusable as reason:
        return str(reason)
    except FAILURES as error:
        if call.begun:
            raise
        return "student_timeout" if isinstance(error, TimeoutError) else "student_unreachable"
    finally:
        if response is not None:
            response.close()
    return None


def _buffered(attempt: _Attempt, response: Answer) -> bool:
    return attempt.held or not is_stream(response)


async def _read_whole(attempt: _Attempt, response: Answer) -> bytes:
    body: bytes = await response.read()
    attempt.call.arrived(body)
    answer = assemble.stream(body) if is_stream(response) else assemble.whole_body(body)
    if not answer.whole:
        raise _Unusable("student_invalid")
    if answer.finish_reason == "length" and attempt.limit_is_ours:
        raise _Unusable("student_too_long")
    if attempt.held and not all(_is_json(choice) for choice in answer.choices):
        raise _Unusable("student_schema")
    return body


def _is_json(choice: dict[str, Any]) -> bool:
    message = choice.get("message") or {}
    if message.get("tool_calls"):
        return True
    try:
        json.loads(message.get("content") or "")
    except ValueError:
        return False
    return True


async def _first(call: Call, response: Answer) -> bytes:
    """The stream up to its first whole event, which says whether the student answers or fails."""
    events, begin = Events(), b""
    while True:
        piece: bytes = await response.piece()
        if not piece:
            raise _Unusable("student_invalid")
        call.arrived(piece)
        begin += piece
        for event in events.feed(piece):
            data = data_of(event)
            if data is None:
                continue
            if b'"error"' in data and assemble.whole_body(data).error:
                raise _Unusable("student_error")
            return begin


async def _pass_on(attempt: _Attempt, response: Answer, begin: bytes) -> None:
    call, send = attempt.call, attempt.send
    call.served_by, call.status = "student", 200
    kind = response.header(b"content-type") or "application/json"
    request_id = (b"x-request-id", str(call.id).encode())  # an upstream sends one too, and clients log it
    headers: Headers = [(b"content-type", kind.encode("latin-1")), request_id, *call.own_headers()]
    call.begun = True
    if not _is_event_stream(kind):
        call.record()
        answer = as_openai(msgspec.json.decode(begin), call.request.model)
        await send_whole(send, 200, headers, msgspec.json.encode(answer))
        return
    done, rewriter = DoneWatch(), Rewriter(strip_usage=not call.request.wants_usage, model=call.request.model)
    headers.append((b"x-accel-buffering", b"no"))
    if done.seen(begin):
        call.record()
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if out := rewriter.feed(begin):
        await send({"type": "http.response.body", "body": out, "more_body": True})
    await send_pieces(call, response, send, done, rewriter)


def _is_event_stream(kind: str) -> bool:
    return kind.lower().startswith(EVENT_STREAM)
