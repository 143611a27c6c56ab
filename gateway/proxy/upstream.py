"""Owns asking an upstream: its address, its credential, and the one field we may add (usage of a stream).

Must not read the answer.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing
from random import uniform
from typing import Any, Protocol
from uuid import UUID

import msgspec

from gateway.core import metrics
from gateway.core.errors import StepdownError
from gateway.providers.spec import UpstreamSpec, speaks
from gateway.proxy.call import Call
from gateway.proxy.client import FAILURES, Address, UpstreamClient, azure_endpoint, endpoint, failure
from gateway.proxy.headers import ClientHeaders, Headers
from gateway.proxy.http1 import Answer, BrokenOff, CannotConnect
from gateway.proxy.paths import CHAT, MODELS
from gateway.routing.snapshot import Asked, NamedUpstream, RouteInForce

log = logging.getLogger(__name__)

_REFUSED = (400, 422)
_PAUSE_S = (0.05, 0.15)
_REPEATABLE = ("GET", "PUT", "DELETE")
_LIST_S = 10.0


class _Listed(msgspec.Struct):
    data: list[Any]


_listed = msgspec.json.Decoder(_Listed)


class Translator(Protocol):
    """The side process that speaks OpenAI's wire for providers that do not."""

    @property
    def base_url(self) -> str:
        """Where it listens. Raises StepdownError (503) while it does not run."""
        ...

    def headers(self, spec: UpstreamSpec, model: str) -> Headers:
        """What it has to be told beside the body; `model` in litellm's notation."""
        ...


class Upstreams:
    """Asks upstreams. Remembers those that refuse to be asked for usage, until the gateway restarts."""

    def __init__(self, client: UpstreamClient, translator: Translator) -> None:
        self._client = client
        self._translator = translator
        self._without_usage: set[UUID] = set()

    def _url(self, upstream: NamedUpstream, model: str, path: str, query: str) -> Address:
        """Where the upstream has this endpoint. Raises StepdownError when it has it nowhere."""
        if upstream.problem is not None:
            raise upstream.problem
        kind = upstream.spec.kind
        if not speaks(kind, path):
            raise StepdownError(
                404, "endpoint_not_spoken", f"Upstream {upstream.name} is of kind {kind}, which does not speak {path}.",
                hint="Route this model to an upstream that does: `openai` for OpenAI's wire, `anthropic` for Messages.",
            )  # fmt: skip
        if kind == "litellm":
            return endpoint(self._translator.base_url, CHAT, query)
        if not upstream.spec.base_url:
            raise StepdownError(
                500, "upstream_incomplete", f"Upstream {upstream.name} has no base URL.",
                hint="Give it one in the dashboard, up to and including /v1.",
            )  # fmt: skip
        if kind == "azure":
            return azure_endpoint(upstream.spec.base_url, model, path, query)
        return endpoint(upstream.spec.base_url, path, query)

    def failure(self, call: Call, error: Exception) -> StepdownError:
        """What to tell the client whose upstream could not be asked."""
        assert call.decision is not None
        upstream = call.asked.upstream if call.asked else call.decision.route.upstream
        return failure(error, upstream.name, self._url(upstream, call.request.model, call.request.endpoint, ""))

    async def ask(self, call: Call, asked: Asked, query: str, retry: bool) -> tuple[Answer, bool]:
        """The open response, and whether the usage in its stream was our wish, to be stripped.

        `retry`: nobody else is there to be asked, so a connection that could not be made is tried once more. Raises
        StepdownError where it cannot be asked at all, what `client.FAILURES` names where it failed.
        """
        request, spec = call.request, asked.upstream.spec
        model: str | None = asked.model or request.model
        url = self._url(asked.upstream, model or "", request.endpoint, query)
        if spec.kind in ("azure", "litellm"):  # told by the address, or beside the body
            model = None
        wish = request.stream and not request.wants_usage and spec.id not in self._without_usage
        body, encoded, wished = request.outgoing(model, ask_usage=wish)
        response = await self._send(call, url, self._headers(call, asked, encoded), body, retry)
        if not wished or response.status not in _REFUSED:
            return response, wished
        # Nothing has run. Was it our wish that was refused? The app must not pay for that: ask as it asked.
        response.close()
        body, encoded, _ = request.outgoing(model, ask_usage=False)
        call.not_answered()
        response = await self._send(call, url, self._headers(call, asked, encoded), body, retry)
        if response.status not in _REFUSED:
            self._without_usage.add(spec.id)
        return response, False

    async def _send(self, call: Call, url: Address, headers: Headers, body: bytes, retry: bool) -> Answer:
        """Sends once; once more only where nothing can have run, or where it may run twice.

        A connection that broke after the request was written tells nothing, but that an unused one was closed is
        commonplace: there what is repeatable is repeated.
        """
        call.sent()
        try:
            return await self._client.ask(url, headers, body, call.request.method)
        except CannotConnect:
            if not retry:
                raise
            metrics.UPSTREAM_RETRIES.labels("connect").inc()
            await asyncio.sleep(uniform(*_PAUSE_S))
        except BrokenOff as error:
            if not (call.headers.repeatable or (error.stale and call.request.method in _REPEATABLE)):
                raise
            metrics.UPSTREAM_RETRIES.labels("disconnect").inc()
        call.not_answered()
        call.sent()
        return await self._client.ask(url, headers, body, call.request.method)

    async def models(self, route: RouteInForce | None, headers: ClientHeaders) -> list[dict[str, Any]]:
        """The models that a route's upstream lists; none where it cannot say."""
        if route is None or route.upstream.spec.kind == "litellm":
            return []
        try:
            url = self._url(route.upstream, "", MODELS, "")
            sent = headers.to_upstream(route.upstream.spec.api_key, stream=True, kind=route.upstream.spec.kind)
            async with asyncio.timeout(_LIST_S):
                response = await self._client.ask(url, sent, b"", "GET")
                with closing(response):
                    found = _listed.decode(await response.read()).data
        except (StepdownError, msgspec.MsgspecError, *FAILURES) as error:
            log.warning("upstream %s does not list its models: %r", route.upstream.name, error)
            return []
        return [model for model in found if isinstance(model, dict)]

    def _headers(self, call: Call, asked: Asked, encoded: bool) -> Headers:
        spec = asked.upstream.spec
        translated = spec.kind == "litellm"
        elsewhere = call.decision is not None and asked is not call.decision.route.upstreams[0]
        credential = "" if translated else spec.api_key
        owner = call.key.upstream
        own = owner is not None and owner.spec.id == spec.id
        if own:  # the key that the caller brought for this very upstream
            credential = ""
        headers = call.headers.to_upstream(credential, call.request.stream, encoded, spec.kind, elsewhere)
        if own:
            headers += call.headers.credentials
        if translated:
            headers += self._translator.headers(spec, asked.model or spec.model or call.request.model)
        return headers
