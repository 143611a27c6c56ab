"""Owns reading token counts from a provider's answer, whatever its dialect of OpenAI's `usage`. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.providers.spec import Usage

_IMPOSSIBLE = 2**31
"""No answer has as many tokens; the database could not hold the number either."""
_CACHED = {"cache_read_input_tokens", "cache_creation_input_tokens"}


def usage_of(raw: Mapping[str, Any]) -> Usage:
    """Reads `usage` of a response of Chat Completions, Responses or Messages; zeros where there is none.

    Cached tokens are part of the prompt's: Anthropic counts what it read from and wrote to its cache apart from the
    input, so there they are added. Reasoning tokens are made part of the completion's: some providers count them
    apart, which shows in the total.
    """
    usage = usage_field(raw)
    if "prompt_tokens" not in usage and _CACHED & usage.keys():
        return _anthropic(usage)
    prompt = _count(usage, "prompt_tokens") or _count(usage, "input_tokens")
    completion = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = _count(details, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens")
    spent = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = _count(spent, "reasoning_tokens")
    if reasoning and _count(usage, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning
    return Usage(prompt, completion, min(cached, prompt), min(reasoning, completion))


def _anthropic(usage: Mapping[str, Any]) -> Usage:
    cached, output = _count(usage, "cache_read_input_tokens"), _count(usage, "output_tokens")
    prompt = _count(usage, "input_tokens") + cached + _count(usage, "cache_creation_input_tokens")
    thinking = _count(usage.get("output_tokens_details"), "thinking_tokens")
    return Usage(prompt, output, cached, min(thinking, output))


def usage_field(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `usage` object, or where Groq's older streams put it; empty when there is none."""
    usage = raw.get("usage")
    if not isinstance(usage, Mapping):
        groq = raw.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, Mapping) else None
    return usage if isinstance(usage, Mapping) else {}


def _count(container: object, name: str) -> int:
    value = container.get(name) if isinstance(container, Mapping) else None
    return int(value) if isinstance(value, int | float) and 0 < value < _IMPOSSIBLE else 0
