"""Owns what every dialect has to say of itself, and the reading of one event. Must not know any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.capture.answer import Answer, error_text
from gateway.core import jsontext


class Assembly:
    """Collects a stream's events until the answer is asked for. `done`: it said [DONE]; `error`: the first failure."""

    def __init__(self) -> None:
        self.done = False
        self.error: str | None = None

    def add(self, data: bytes) -> None:
        """Takes one event's data."""
        if data.strip() == b"[DONE]":
            self.done = True
            return
        try:
            event = jsontext.decode(data)
        except ValueError as error:
            self.error = self.error or f"an event is not JSON: {error}"
            return
        if isinstance(event, dict):
            self.error = self.error or error_text(event)
            self.take(event)

    def take(self, event: dict[str, Any]) -> None:
        """Takes one event, decoded."""
        raise NotImplementedError

    def answer(self) -> Answer:
        """The answer as far as it arrived."""
        raise NotImplementedError


@dataclass(frozen=True)
class Dialect:
    """`items`: the field of a request whose items are stored one by one. `as_chat`: a request in the form of Chat
    Completions, for hashes, previews and training. `whole`: reads an answer that was not streamed."""

    items: str | None
    as_chat: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    whole: Callable[[dict[str, Any]], Answer]
    assembly: Callable[[], Assembly]


def text_parts(content: Any, kinds: Mapping[str, str]) -> Any:
    """Content in the form of Chat Completions: `kinds` names the parts that are text, and their field."""
    if not isinstance(content, list):
        return content
    parts: list[Any] = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(kind, str) and kind in kinds:
            parts.append({"type": "text", "text": part.get(kinds[kind]) or ""})
        else:
            parts.append(part)
    return parts
