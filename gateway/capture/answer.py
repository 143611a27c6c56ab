"""Owns what an answer is once it has been read, whatever its dialect. Must not read bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """`response` as its dialect gives it without streaming; None when nothing of the kind arrived.

    `whole`: nothing failed and nothing is missing; in a stream every choice finished, and it said that it ended.
    `choices`: what it says in the form of Chat Completions, whatever its dialect.
    """

    response: dict[str, Any] | None
    whole: bool
    error: str | None = None
    choices: list[dict[str, Any]] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether every choice says why it ended."""
        return bool(self.choices) and all(c.get("finish_reason") for c in self.choices)

    @property
    def finish_reason(self) -> str | None:
        """The first choice's finish reason."""
        reason = self.choices[0].get("finish_reason") if self.choices else None
        return reason if isinstance(reason, str) else None


def error_text(response: dict[str, Any]) -> str | None:
    """What an error answer says, in one line."""
    error = response.get("error")
    if not error:
        return None
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or error)[:500]


def dicts_in(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def chat_choice(
    content: str | None,
    finish_reason: str | None,
    tool_calls: list[dict[str, Any]],
    *,
    refusal: str = "",
    reasoning: str = "",
) -> dict[str, Any]:
    """A choice as Chat Completions has it, `reasoning` where providers that tell it put it."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning:
        message["reasoning_content"] = reasoning
    if tool_calls:
        message["tool_calls"] = tool_calls
    if refusal:
        message["refusal"] = refusal
    return {"index": 0, "message": message, "finish_reason": finish_reason}


def chat_tool_call(id: Any, name: Any, arguments: str) -> dict[str, Any]:
    """A call of a function as Chat Completions has it."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
