"""Owns the shapes of captured traffic."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from gateway.admin.schemas.common import JsonObject, Money, Named, Shape


class CallRow(Shape):
    """One call as the list shows it."""

    id: UUID
    received_at: datetime
    alias: str = Field(description="The model name that the app sent.")
    task: Named | None
    served_by: str = Field(description="upstream, student or gateway")
    upstream: Named | None
    student: Named | None
    fallback_reason: str | None
    streamed: bool
    status: int
    complete: bool
    trainable: bool
    finish_reason: str | None
    error: str | None
    latency_ms: float
    ttfb_ms: float | None
    overhead_ms: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost: Money | None = Field(description="USD; null where no price was known.")
    preview: str
    answer_preview: str


class CallPage(Shape):
    """Newest first. `next_before` is the cursor of the next page, null at the end."""

    calls: list[CallRow]
    next_before: UUID | None


class CallDetail(CallRow):
    """A call with its bodies. `request` and `response` are null where the key's capture mode kept none."""

    endpoint: str
    tags: JsonObject
    trajectory: str | None
    route_revision: int | None
    request: JsonObject | None
    response: Any | None
    conversation: list[JsonObject] = Field(description="What was asked, as Chat Completions has it, in any dialect.")
    answers: list[JsonObject] = Field(description="What was answered, as messages of Chat Completions.")
    price: JsonObject | None = Field(description="The price as it was at the time of the call.")
