"""Owns making one answer of what crossed the wire: streamed pieces become the non-streamed form.

Must not decide what is kept. An answer that is not whole is never made to look so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gateway.capture.delta import Message
from gateway.core import jsontext
from gateway.core.compression import decompress
from gateway.core.sse import BOM, Events, data_of

STREAM_STARTS = tuple(bom + field for bom in (b"", BOM) for field in (b"data:", b"event:", b"id:", b"retry:", b":"))
_EXTRA = ("id", "created", "model", "system_fingerprint", "service_tier", "provider")


@dataclass(frozen=True)
class Answer:
    """`response` as Chat Completions gives it without streaming; None when nothing of the kind arrived.

    `whole`: nothing failed and nothing is missing; in a stream every choice finished, and it said [DONE].
    """

    response: dict[str, Any] | None
    whole: bool
    error: str | None = None

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The choices that have the form of one."""
        found = (self.response or {}).get("choices")
        return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []

    @property
    def finished(self) -> bool:
        """Whether every choice says why it ended."""
        return bool(self.choices) and all(c.get("finish_reason") for c in self.choices)

    @property
    def finish_reason(self) -> str | None:
        """The first choice's finish reason."""
        reason = self.choices[0].get("finish_reason") if self.choices else None
        return reason if isinstance(reason, str) else None


def received(body: bytes, encoding: str | None) -> Answer:
    """The answer in the bytes that a client was sent, `encoding` being their content-encoding."""
    try:
        clear = decompress(body, encoding)
    except ValueError as error:
        return Answer(None, whole=False, error=f"the {encoding} answer cannot be read: {error}")
    # The bytes decide, not the request: one that asked for a stream may be answered without.
    return stream(clear) if clear.lstrip().startswith(STREAM_STARTS) else whole_body(clear)


def whole_body(body: bytes) -> Answer:
    """Reads a non-streamed answer."""
    try:
        response = jsontext.decode(body)
    except ValueError as bad:
        return Answer(None, whole=False, error=f"the answer is not JSON: {bad}" if body else "the answer is empty")
    if not isinstance(response, dict):
        return Answer(None, whole=False, error="the answer is not a JSON object")
    answer = Answer(response, whole=False, error=error_text(response))
    return replace(answer, whole=answer.error is None and bool(answer.choices))


def stream(body: bytes) -> Answer:
    """Assembles a streamed answer from its server-sent events."""
    assembly = Assembly()
    events = Events()
    for event in [*events.feed(body), events.rest()]:
        data = data_of(event)
        if data is not None:
            assembly.add(data)
    return assembly.answer()


def error_text(response: dict[str, Any]) -> str | None:
    """What an error answer says, in one line."""
    error = response.get("error")
    if not error:
        return None
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or error)[:500]


class Assembly:
    """Collects chunks until the answer is asked for."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._choices: dict[int, Message] = {}
        self._usage: dict[str, Any] | None = None
        self._done = False
        self._error: str | None = None

    def add(self, data: bytes) -> None:
        """Takes one event's data."""
        if data.strip() == b"[DONE]":
            self._done = True
            return
        try:
            chunk = jsontext.decode(data)
        except ValueError as error:
            self._error = self._error or f"an event is not JSON: {error}"
            return
        if not isinstance(chunk, dict):
            return
        self._error = self._error or error_text(chunk)
        for name in _EXTRA:
            if chunk.get(name) is not None:
                self._top.setdefault(name, chunk[name])
        groq = chunk.get("x_groq")
        usage = chunk.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
        if isinstance(usage, dict):
            self._usage = usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict):
                index = choice.get("index")
                index = index if isinstance(index, int) else 0
                self._choices.setdefault(index, Message()).add(choice)

    def answer(self) -> Answer:
        """The answer as far as it arrived."""
        if not self._top and not self._choices:
            return Answer(None, whole=False, error=self._error)
        choices = [self._choices[index].choice(index) for index in sorted(self._choices)]
        response = {**self._top, "object": "chat.completion", "choices": choices}
        if self._usage is not None:
            response["usage"] = self._usage
        answer = Answer(response, whole=False, error=self._error)
        return replace(answer, whole=self._done and self._error is None and answer.finished)
