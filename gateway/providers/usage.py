"""Owns reading token counts from a provider's answer, whatever its dialect of OpenAI's `usage`. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.providers.spec import Usage


def usage_of(raw: Mapping[str, Any]) -> Usage:
    """Reads `usage` of a response of Chat Completions or of the Responses API; zeros where there is none.

    Cached tokens are part of the prompt's. Reasoning tokens are made part of the completion's: some providers
    count them apart, which shows in the total.
    """
    usage = usage_field(raw)
    prompt = _count(usage, "prompt_tokens") or _count(usage, "input_tokens")
    completion = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = _count(details, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens")
    spent = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = _count(spent, "reasoning_tokens")
    if reasoning and _count(usage, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning
    return Usage(prompt, completion, min(cached, prompt), min(reasoning, completion))


def usage_field(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `usage` object, or where Groq's older streams put it; empty when there is none."""
    usage = raw.get("usage")
    if not isinstance(usage, Mapping):
        groq = raw.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, Mapping) else None
    return usage if isinstance(usage, Mapping) else {}


def _count(container: object, name: str) -> int:
    value = container.get(name) if isinstance(container, Mapping) else None
    return int(value) if isinstance(value, int | float) and value > 0 else 0
