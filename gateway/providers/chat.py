"""Owns calling a provider's model once: the openai client for OpenAI's wire, litellm for the rest.

Both libraries are imported at the first call: the gateway process must not carry them.
"""

from __future__ import annotations

import os
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gateway.core.errors import StepdownError
from gateway.providers.spec import ChatModel, ChatResult, UpstreamSpec
from gateway.providers.usage import usage_of

if TYPE_CHECKING:
    import openai


def chat_model(spec: UpstreamSpec) -> ChatModel:
    """The chat model that `spec` describes."""
    return OpenAIChat(spec) if spec.kind == "openai" else LitellmChat(spec)


def _for_litellm(spec: UpstreamSpec) -> dict[str, Any]:
    """How litellm has to be told of an upstream: the provider is part of the model's name."""
    base, _, query = (spec.base_url or "").partition("?")
    told: dict[str, Any] = {"model": spec.model, "base_url": base or None}
    if spec.kind == "anthropic":
        told |= {"model": f"anthropic/{spec.model}", "base_url": base.removesuffix("/v1")}
    elif spec.kind == "azure":
        told |= {"model": f"azure/{spec.model}", "api_version": query.removeprefix("api-version=") or None}
    return told


def _result(raw: dict[str, Any], started: float, spec: UpstreamSpec) -> ChatResult:
    choices = raw.get("choices") or []
    if not choices:
        raise StepdownError(
            502,
            "upstream_answer_empty",
            f"{spec.model} answered without choices.",
            hint="Look at the upstream's own log for this call.",
        )
    message = choices[0].get("message") or {}
    return ChatResult(
        content=message.get("content"),
        finish_reason=choices[0].get("finish_reason"),
        usage=usage_of(raw),
        latency_s=time.monotonic() - started,
        tool_calls=message.get("tool_calls") or [],
        raw=raw,
    )


class OpenAIChat:
    """A model behind OpenAI's wire. The client retries what is safe to repeat: a judge's call changes nothing."""

    def __init__(self, spec: UpstreamSpec) -> None:
        self.spec = spec

    @cached_property
    def _client(self) -> openai.AsyncOpenAI:
        import openai

        return openai.AsyncOpenAI(
            base_url=self.spec.base_url, api_key=self.spec.api_key, timeout=self.spec.timeout_s, max_retries=4
        )

    async def complete(self, request: dict[str, Any]) -> ChatResult:
        """See `ChatModel.complete`."""
        import openai

        started = time.monotonic()
        try:
            # The extra body lets every field of the request through, known to this client's version or not.
            body = {k: v for k, v in request.items() if k != "messages"}
            answer = await self._client.chat.completions.create(
                model=self.spec.model, messages=request["messages"], extra_body=body
            )
        except openai.OpenAIError as error:
            raise StepdownError(
                502,
                "upstream_failed",
                f"{self.spec.model} at {self.spec.base_url} failed: {error}",
                hint="Check the upstream's base URL, key and model name.",
            ) from error
        return _result(answer.model_dump(), started, self.spec)


class LitellmChat:
    """A model behind another wire, for which litellm translates."""

    def __init__(self, spec: UpstreamSpec) -> None:
        self.spec = spec

    async def complete(self, request: dict[str, Any]) -> ChatResult:
        """See `ChatModel.complete`."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm
        import openai

        started = time.monotonic()
        try:
            answer = await litellm.acompletion(
                **_for_litellm(self.spec),
                api_key=self.spec.api_key,
                timeout=self.spec.timeout_s,
                num_retries=2,
                **request,
            )
        except openai.OpenAIError as error:  # litellm's exceptions derive from the openai client's
            raise StepdownError(
                502,
                "upstream_failed",
                f"{self.spec.model} through litellm failed: {error}",
                hint="Check the upstream's model name (provider/model), key and base URL.",
            ) from error
        return _result(answer.model_dump(), started, self.spec)
