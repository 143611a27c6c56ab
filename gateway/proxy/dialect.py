"""Owns what a student's answer looks like to the app: OpenAI's fields and no others, under the model name it asked for.

An engine adds fields of its own and leaves details null that OpenAI counts. Must not change what was said.
"""

from __future__ import annotations

from typing import Any

_ANSWER = ("id", "object", "created", "model", "choices", "usage")
_CHOICE = ("index", "message", "delta", "finish_reason", "logprobs")
_MESSAGE = ("role", "content", "refusal", "annotations", "tool_calls")
_NULLABLE = ("content", "refusal")
_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = {
    "prompt_tokens_details": ("cached_tokens", "audio_tokens"),
    "completion_tokens_details": (
        "reasoning_tokens", "audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens",
    ),
}  # fmt: skip


def as_openai(answer: dict[str, Any], model: str) -> dict[str, Any]:
    """A Chat Completions answer, or a chunk of one, as the app expects it."""
    shaped = {name: answer[name] for name in _ANSWER if name in answer}
    shaped["model"] = model
    shaped["choices"] = [_choice(choice) for choice in answer.get("choices") or []]
    if answer.get("usage"):
        shaped["usage"] = _usage(answer["usage"])
    return shaped


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    shaped = {name: choice[name] for name in _CHOICE if name in choice}
    for part in ("message", "delta"):
        if part in shaped:
            shaped[part] = {
                name: value
                for name, value in shaped[part].items()
                if name in _MESSAGE and (value or (name in _NULLABLE and (value is not None or part == "message")))
            }
    return shaped


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    shaped = {name: usage[name] for name in _USAGE if name in usage}
    for name, counts in _DETAILS.items():
        found = usage.get(name) or {}
        shaped[name] = {count: found.get(count) or 0 for count in counts}
    return shaped
