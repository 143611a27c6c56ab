"""Owns asking an upstream: its address, its credential, and the one field we may add (usage of a stream).

Must not read the answer.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.core.errors import StepdownError
from gateway.providers.spec import UpstreamSpec
from gateway.proxy.call import Call
from gateway.proxy.client import UpstreamClient, endpoint, failure
from gateway.proxy.paths import CHAT
from gateway.routing.snapshot import NamedUpstream, RouteInForce

_REFUSED = (400, 422)


class Translator(Protocol):
    """The side process that speaks OpenAI's wire for providers that do not."""

    @property
    def base_url(self) -> str:
        """Where it listens. Raises StepdownError (503) while it does not run."""
        ...

    def headers(self, spec: UpstreamSpec, model: str) -> dict[str, str]:
        """What it has to be told beside the body; `model` in litellm's notation."""
        ...


class Upstreams:
    """Asks upstreams. Remembers those that refuse to be asked for usage, until the gateway restarts."""

    def __init__(self, client: UpstreamClient, translator: Translator) -> None:
        self._client = client
        self._translator = translator
        self._without_usage: set[UUID] = set()

    def _url(self, upstream: NamedUpstream, query: str) -> URL:
        """Where the upstream's chat completions are. Raises StepdownError when that is not known."""
        if upstream.problem is not None:
            raise upstream.problem
        if upstream.spec.kind == "litellm":
            return endpoint(self._translator.base_url, CHAT, query)
        if not upstream.spec.base_url:
            raise StepdownError(
                500, "upstream_incomplete", f"Upstream {upstream.name} has no base URL.",
                hint="Give it one in the dashboard, up to and including /v1.",
            )  # fmt: skip
        return endpoint(upstream.spec.base_url, CHAT, query)

    def failure(self, call: Call, error: Exception) -> StepdownError:
        """What to tell the client whose upstream could not be asked."""
        assert call.decision is not None
        upstream = call.decision.route.upstream
        return failure(error, upstream.name, self._url(upstream, ""))

    async def ask(self, call: Call, route: RouteInForce, query: str) -> tuple[aiohttp.ClientResponse, bool]:
        """The open response, and whether the usage in its stream was our wish, to be stripped."""
        request, spec = call.request, route.upstream.spec
        url = self._url(route.upstream, query)
        asks = request.stream and not request.wants_usage and spec.id not in self._without_usage
        body, encoded, asked = request.outgoing(route.upstream_model, ask_usage=asks)
        headers = self._headers(call, spec, encoded)
        call.sent()
        response = await self._client.post(url, headers, body)
        if not asked or response.status not in _REFUSED:
            return response, asked
        # Nothing has run. Was it our wish that was refused? The app must not pay for that: ask as it asked.
        response.close()
        body, encoded, _ = request.outgoing(route.upstream_model, ask_usage=False)
        call.not_answered()
        call.sent()
        response = await self._client.post(url, self._headers(call, spec, encoded), body)
        if response.status not in _REFUSED:
            self._without_usage.add(spec.id)
        return response, False

    def _headers(self, call: Call, spec: UpstreamSpec, encoded: bool) -> CIMultiDict[str]:
        if spec.kind != "litellm":
            return call.headers.to_upstream(spec.api_key, call.request.stream, encoded)
        headers = call.headers.to_upstream("", call.request.stream, encoded)
        route = call.decision.route if call.decision else None
        named = route.upstream_model if route else None
        headers.update(self._translator.headers(spec, named or spec.model or call.request.model))
        return headers
