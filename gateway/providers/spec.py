"""Owns what a provider's model is to the rest: its address, prices, answers. Must not open connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol
from uuid import UUID

MILLION = Decimal(1_000_000)
UpstreamKind = Literal["openai", "anthropic", "azure", "litellm"]
"""`openai` speaks OpenAI's wire, `anthropic` its own Messages, `azure` OpenAI's under Azure's addresses; calls of these
are relayed byte for byte. `litellm` needs translation."""


def speaks(kind: UpstreamKind, endpoint: str) -> bool:
    """Whether an upstream of this kind can be asked at an endpoint, as far as its kind tells."""
    messages = endpoint.split("/", 1)[0] == "messages"
    if kind == "litellm":
        return endpoint == "chat/completions"
    if kind == "anthropic":
        return messages or endpoint.split("/", 1)[0] == "models"
    return kind == "openai" or not messages


@dataclass(frozen=True)
class Prices:
    """USD per million tokens. Cached input is part of the input tokens and is billed once, at its own price."""

    input_per_mtok: Decimal = Decimal(0)
    cached_input_per_mtok: Decimal = Decimal(0)
    output_per_mtok: Decimal = Decimal(0)


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. `cached` is part of `prompt`, `reasoning` part of `completion`."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0

    def cost(self, prices: Prices) -> Decimal:
        """USD, exact."""
        fresh = max(self.prompt - self.cached, 0)
        return (
            fresh * prices.input_per_mtok
            + self.cached * prices.cached_input_per_mtok
            + self.completion * prices.output_per_mtok
        ) / MILLION


@dataclass(frozen=True)
class UpstreamSpec:
    """A provider's model, at `base_url`."""

    id: UUID
    project_id: UUID
    kind: UpstreamKind
    base_url: str | None
    model: str
    api_key: str = field(repr=False)
    timeout_s: float = 120.0
    prices: Prices = Prices()


@dataclass(frozen=True)
class ChatResult:
    """One answer. `content` is None where the model only called tools; `raw` is the whole response."""

    content: str | None
    finish_reason: str | None
    usage: Usage
    latency_s: float
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)


class ChatModel(Protocol):
    """Something that answers chat requests: a real provider's model, or a fake in tests."""

    async def complete(self, request: dict[str, Any]) -> ChatResult:
        """Answers a Chat Completions request body (without `model`, which the spec gives).

        Raises StepdownError when the provider cannot be reached or refuses.
        """
        ...
