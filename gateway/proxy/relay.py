"""Owns the hot path: OpenAI's /v1 as raw ASGI, from the client's bytes to the answer's.

Between a request and its answer stand only the key, the route and one append to the spool. Must not touch the
database, parse more than a route needs, nor wait for anything but whoever answers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from gateway.capture.spool import Spool
from gateway.core import metrics
from gateway.core.errors import StepdownError
from gateway.core.settings import Settings
from gateway.proxy import student
from gateway.proxy.answer import Send, UpstreamCut, relay, send_whole
from gateway.proxy.body import Receive, read_body
from gateway.proxy.call import Call
from gateway.proxy.client import FAILURES, UpstreamClient, failure
from gateway.proxy.hangup import HangupWatch
from gateway.proxy.headers import ClientHeaders
from gateway.proxy.models import models_answer
from gateway.proxy.paths import CHAT, MODELS, endpoint_of
from gateway.proxy.upstream import Upstreams
from gateway.proxy.wire import ChatRequest
from gateway.routing.policy import decide
from gateway.routing.refresh import SnapshotHolder
from gateway.routing.snapshot import KeyInForce

log = logging.getLogger(__name__)
_INTERNAL = StepdownError(
    500, "internal_error", "The gateway failed on this call.", hint="Its log has the reason beside the call's id."
)


class Relay:
    """The ASGI application of the data plane."""

    def __init__(
        self, settings: Settings, snapshots: SnapshotHolder, spool: Spool, client: UpstreamClient, upstreams: Upstreams
    ) -> None:
        self._limit = settings.max_body_mb * 1_000_000
        self._abort = settings.hangup != "drain"
        self._mode = "full" if settings.capture else "off"
        self._student_timeout_s = settings.student_timeout_s
        self._snapshots = snapshots
        self._spool = spool
        self._client = client
        self._upstreams = upstreams
        self._in_flight = 0
        metrics.IN_FLIGHT.set_function(lambda: self._in_flight)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answers one request."""
        headers = ClientHeaders(scope["headers"])
        endpoint = endpoint_of(scope["path"])
        method = scope["method"]
        try:
            key = self._key(headers)
            if endpoint == CHAT and method == "POST":
                await self._chat(scope, key, headers, receive, send)
            elif endpoint is not None and endpoint.split("/")[0] == MODELS and method == "GET":
                await send_json(send, 200, models_answer(key.project, endpoint))
            else:
                raise _unknown(endpoint, method)
        except StepdownError as error:
            metrics.REFUSED.labels(error.code).inc()
            await send_json(send, error.status, error.openai_body())

    def _key(self, headers: ClientHeaders) -> KeyInForce:
        snapshot = self._snapshots.current
        if snapshot is None:
            raise StepdownError(
                503, "not_ready", "The gateway has not read its keys and routes yet: the database does not answer.",
                hint="Try again shortly; `stepdown status` says what is missing.",
            )  # fmt: skip
        if not headers.token:
            raise StepdownError(
                401, "api_key_missing", "No API key was sent.",
                hint="Send a gateway key (sd-…) as `Authorization: Bearer`; `stepdown keys create` makes one.",
            )  # fmt: skip
        key = snapshot.key(headers.token)
        if key is None:
            raise StepdownError(
                401, "invalid_api_key", f"The API key {headers.token[:6]}… is not known here or was revoked.",
                hint="Send a gateway key (sd-…), not the provider's; `stepdown keys create` makes one.",
            )  # fmt: skip
        return key

    async def _chat(self, scope: Any, key: KeyInForce, headers: ClientHeaders, receive: Receive, send: Send) -> None:
        body = await read_body(receive, headers, self._limit)
        if body is None:
            return
        request = ChatRequest(body, headers.encoding, self._limit)
        request.header_task = headers.task
        call = Call(key, headers, request, self._spool, self._mode)
        watch = HangupWatch(call, receive, self._abort)
        self._in_flight += 1
        try:
            await self._answer(call, scope["query_string"].decode("latin-1"), send)
        except StepdownError as error:
            await self._refuse(call, error, send)
        except UpstreamCut as cut:
            metrics.CUTS.labels(cut.reason).inc()
            log.warning("call %s: the answer of its %s broke off: %s", call.id, call.served_by, cut)
        except Exception:
            log.exception("call %s failed in the gateway", call.id)
            if call.begun:
                raise
            await self._refuse(call, _INTERNAL, send)
        except asyncio.CancelledError:
            call.cut = "client_hangup" if call.gone else "gateway_shutdown"
            call.record(error=call.cut)
            if not call.gone:
                raise
        finally:
            self._in_flight -= 1
            watch.stop()

    async def _refuse(self, call: Call, error: StepdownError, send: Send) -> None:
        metrics.REFUSED.labels(error.code).inc()
        call.served_by, call.status = "gateway", error.status
        call.record(error=str(error))
        headers = [(b"content-type", b"application/json"), *call.own_headers()]
        await send_whole(send, error.status, headers, msgspec.json.encode(error.openai_body()))

    async def _answer(self, call: Call, query: str, send: Send) -> None:
        call.decision = decision = decide(call.key.project, call.request.model, call.request)
        call.fallback_reason = decision.fallback_reason
        if decision.student is not None:
            reason = await student.answer(call, decision.student, self._client, send, self._student_timeout_s)
            if reason is None:
                return
            call.fallback_reason = reason
            call.not_answered()
        if call.fallback_reason is not None:
            metrics.FALLBACKS.labels(call.fallback_reason).inc()
        call.served_by = "upstream"
        upstream = decision.route.upstream
        url = self._upstreams.url(upstream, query)
        try:
            response, strip_usage = await self._upstreams.ask(call, url)
        except FAILURES as error:
            raise failure(error, upstream.name, url) from error
        try:
            await relay(call, response, send, strip_usage)
        finally:
            response.close()


async def send_json(send: Send, status: int, body: object) -> None:
    """Sends an answer of our own."""
    await send_whole(send, status, [(b"content-type", b"application/json")], msgspec.json.encode(body))


def _unknown(endpoint: str | None, method: str) -> StepdownError:
    if endpoint in (CHAT, MODELS):
        return StepdownError(
            405, "method_not_allowed", f"{method} is not answered at /v1/{endpoint}.",
            hint="POST /v1/chat/completions or GET /v1/models.",
        )  # fmt: skip
    return StepdownError(
        404, "unknown_path", f"There is nothing at /v1/{endpoint or ''}.",
        hint="The gateway answers POST /v1/chat/completions and GET /v1/models.",
    )  # fmt: skip
