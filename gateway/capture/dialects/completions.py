"""Owns OpenAI's older Completions: a prompt in, text out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.capture.answer import Answer, chat_choice, dicts_in, error_text
from gateway.capture.delta import joined
from gateway.capture.dialects.base import Assembly


def as_chat(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The prompt as the one message of a chat; several prompts, or tokens, as they are."""
    return {"messages": [{"role": "user", "content": request.get("prompt")}]}


def whole(response: dict[str, Any]) -> Answer:
    """Reads an answer that was not streamed."""
    error, choices = error_text(response), _as_chat(response)
    return Answer(response, error is None and bool(choices), error, choices)


def _as_chat(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        chat_choice(choice.get("text"), choice.get("finish_reason"), []) for choice in dicts_in(response.get("choices"))
    ]


class CompletionAssembly(Assembly):
    """Collects chunks."""

    def __init__(self) -> None:
        super().__init__()
        self._top: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}

    def take(self, event: dict[str, Any]) -> None:
        for name, value in event.items():
            if name not in ("choices", "error") and value is not None:
                self._top[name] = value
        for choice in dicts_in(event.get("choices")):
            index = choice.get("index")
            index = index if isinstance(index, int) else 0
            known = self._choices.setdefault(
                index, {"text": "", "index": index, "logprobs": None, "finish_reason": None}
            )
            for name, value in choice.items():
                if name == "logprobs" and isinstance(value, dict) and isinstance(known["logprobs"], dict):
                    known["logprobs"] = {k: joined(known["logprobs"].get(k), v) for k, v in value.items()}
                elif name == "text":
                    known["text"] = joined(known["text"], value if value is not None else "")
                elif name != "index" and value is not None:
                    known[name] = value

    def answer(self) -> Answer:
        if not self._choices:
            return Answer(None, whole=False, error=self.error)
        response = {**self._top, "choices": [self._choices[index] for index in sorted(self._choices)]}
        choices = _as_chat(response)
        finished = all(choice["finish_reason"] for choice in choices)
        return Answer(response, self.done and self.error is None and finished, self.error, choices)
