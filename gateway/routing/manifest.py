"""Owns what a student's manifest lets it answer. Must not read the database nor count tokens exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.core.messages import text_of
from gateway.routing.request import RequestView
from gateway.tasks.fingerprint import canonical, messages_of, response_format

BYTES_PER_TOKEN = 3
"""Fewer than English needs (about 4): the estimate may refuse what would fit, never the other way round."""
TOKENS_PER_MESSAGE = 8


def outside(manifest: Mapping[str, Any], request: RequestView) -> str | None:
    """Why the student may not answer `request`; None when it may.

    The manifest's keys: `fingerprint` (hex, None for prompts without one), `context_length`, `max_new_tokens`,
    `tools` (whether it may be given any) and `response_format`.
    """
    body, messages = request.body, messages_of(request.body)
    context, longest = manifest.get("context_length"), int(manifest.get("max_new_tokens") or 0)
    fingerprint = request.fingerprint.hex() if request.fingerprint else None
    # Cheapest first: the first that holds is the reason, and the rest is not looked at.
    reasons: list[tuple[str, Callable[[], bool]]] = [
        ("messages_malformed", lambda: not messages or len(messages) != len(body["messages"])),
        ("n", lambda: (body.get("n") or 1) != 1),
        ("logprobs", lambda: bool(body.get("logprobs") or body.get("top_logprobs"))),
        ("tools", lambda: bool(body.get("tools") or body.get("functions")) and not manifest.get("tools")),
        ("content_not_text", lambda: any(text_of(m.get("content")) is None for m in messages) or "audio" in body),
        ("response_format", lambda: canonical(response_format(body)) != canonical(response_format(manifest))),
        ("prompt_changed", lambda: fingerprint != manifest.get("fingerprint")),
        ("context_length", lambda: bool(context) and _tokens(messages, body) + longest > int(context or 0)),
    ]
    return next((reason for reason, holds in reasons if holds()), None)


def _tokens(messages: list[Mapping[str, Any]], body: Mapping[str, Any]) -> int:
    size = sum(len((text_of(m.get("content")) or "").encode(errors="replace")) for m in messages)
    size += sum(len(canonical(m["tool_calls"])) for m in messages if m.get("tool_calls"))
    size += len(canonical(body["tools"])) if body.get("tools") else 0
    return size // BYTES_PER_TOKEN + TOKENS_PER_MESSAGE * len(messages)
