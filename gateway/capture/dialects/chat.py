"""Owns OpenAI's Chat Completions: its chunks become the answer that it gives without streaming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.capture.answer import Answer, dicts_in, error_text
from gateway.capture.delta import Message
from gateway.capture.dialects.base import Assembly

_EXTRA = ("id", "created", "model", "system_fingerprint", "service_tier", "provider")


def as_chat(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request itself."""
    return request


def whole(response: dict[str, Any]) -> Answer:
    """Reads an answer that was not streamed."""
    error, choices = error_text(response), dicts_in(response.get("choices"))
    return Answer(response, error is None and bool(choices), error, choices)


class ChatAssembly(Assembly):
    """Collects chunks."""

    def __init__(self) -> None:
        super().__init__()
        self._top: dict[str, Any] = {}
        self._choices: dict[int, Message] = {}
        self._usage: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> None:
        for name in _EXTRA:
            if event.get(name) is not None:
                self._top.setdefault(name, event[name])
        groq = event.get("x_groq")
        usage = event.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
        if isinstance(usage, dict):
            self._usage = usage
        for choice in dicts_in(event.get("choices")):
            index = choice.get("index")
            self._choices.setdefault(index if isinstance(index, int) else 0, Message()).add(choice)

    def answer(self) -> Answer:
        if not self._top and not self._choices:
            return Answer(None, whole=False, error=self.error)
        choices = [self._choices[index].choice(index) for index in sorted(self._choices)]
        response = {**self._top, "object": "chat.completion", "choices": choices}
        if self._usage is not None:
            response["usage"] = self._usage
        answer = Answer(response, whole=False, error=self.error, choices=choices)
        return replace(answer, whole=self.done and self.error is None and answer.finished)
