"""Owns the hot path: OpenAI's /v1 as raw ASGI, from the client's bytes to the answer's.

Between a request and its answer stand only the key, the route and one append to the spool. Must not touch the
database, parse more than a route needs, nor wait for anything but whoever answers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import unquote

import msgspec

from gateway.capture.spool import Spool
from gateway.core import metrics
from gateway.core.errors import StepdownError
from gateway.core.settings import Settings
from gateway.proxy import student
from gateway.proxy.answer import Send, send_whole
from gateway.proxy.attempts import Attempts
from gateway.proxy.body import Receive, read_body
from gateway.proxy.call import Call
from gateway.proxy.client import FAILURES, TooLate, UpstreamClient
from gateway.proxy.headers import ClientHeaders
from gateway.proxy.models import models_answer, models_list
from gateway.proxy.paths import CHAT, COMPLETIONS, MODELS, deployment_of
from gateway.proxy.plain import PlainRequest
from gateway.proxy.refusal import JSON, error_body, request_id, turned_away
from gateway.proxy.resting import Resting
from gateway.proxy.slots import Slots
from gateway.proxy.upstream import Upstreams
from gateway.proxy.verified import Verified
from gateway.proxy.watch import Watchman
from gateway.proxy.wire import ChatRequest
from gateway.routing.policy import ANY, decide, decide_passed, decide_plain
from gateway.routing.refresh import SnapshotHolder
from gateway.routing.snapshot import KeyInForce, StudentInForce

log = logging.getLogger(__name__)
_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE"))
_PATIENCE = 2
_INTERNAL = StepdownError(
    500, "internal_error", "The gateway failed on this call.", hint="Its log has the reason beside the call's id."
)


class Relay:
    """The data plane: what ASGI gives for a request, and the endpoint that its path means."""

    def __init__(
        self, settings: Settings, snapshots: SnapshotHolder, spool: Spool, client: UpstreamClient, upstreams: Upstreams
    ) -> None:
        self._limit = settings.max_body_mb * 1_000_000
        self._mode = "full" if settings.capture else "off"
        self._student_timeout_s = settings.student_timeout_s
        self._resting = Resting(_PATIENCE, settings.student_timeout_s)
        self._snapshots = snapshots
        self._spool = spool
        self._client = client
        self._upstreams = upstreams
        self._attempts = Attempts(upstreams)
        self._slots = Slots()
        self._verified = Verified()
        self.watchman = Watchman(
            settings.first_byte_timeout_s, settings.idle_timeout_s, settings.total_timeout_s, settings.hangup != "drain"
        )
        metrics.IN_FLIGHT.set_function(lambda: len(self.watchman))

    async def __call__(self, scope: Any, endpoint: str, token: str, receive: Receive, send: Send) -> None:
        """Answers one request. `token`: the pass-through token of its path, "" where there was none."""
        headers = ClientHeaders(scope["headers"])
        method = scope["method"]
        try:
            key = self._key(headers, token)
            if not _is_answered(endpoint, method):
                raise _unknown(endpoint, method)
            if method == "GET" and (models := await self._models(key, headers, endpoint)) is not None:
                await send_whole(send, 200, [JSON, request_id()], msgspec.json.encode(models))
            else:
                await self._call(scope, key, headers, endpoint, receive, send)
        except StepdownError as error:
            await send_whole(send, error.status, *turned_away(endpoint, error))

    @property
    def upstreams_resting(self) -> Resting:
        """Which upstreams rest, by id."""
        return self._attempts.resting

    def _key(self, headers: ClientHeaders, token: str) -> KeyInForce:
        snapshot = self._snapshots.current
        if snapshot is None:
            raise StepdownError(
                503, "not_ready", "The gateway has not read its keys and routes yet: the database does not answer.",
                hint="Try again shortly; `stepdown status` says what is missing.",
            )  # fmt: skip
        if token:
            return _passing(snapshot.key(token), headers)
        if not headers.token:
            raise StepdownError(
                401, "api_key_missing", "No API key was sent.",
                hint="Send a gateway key (sd-…) as `Authorization: Bearer`; `stepdown keys create` makes one.",
            )  # fmt: skip
        key = snapshot.key(headers.token)
        if key is None or key.upstream is not None:
            raise StepdownError(
                401, "invalid_api_key", f"The API key {headers.token[:6]}… is not known here or was revoked.",
                hint="Send a gateway key (sd-…), not the provider's; `stepdown keys create` makes one.",
            )  # fmt: skip
        return key

    async def _models(self, key: KeyInForce, headers: ClientHeaders, endpoint: str) -> dict[str, Any] | None:
        """The answer to a question about models; None where it is another question, or one for the upstream."""
        project = key.project
        if key.upstream is not None:
            return None
        if endpoint == MODELS:
            return models_list(project, await self._upstreams.models(project.routes.get((ANY, None)), headers))
        return models_answer(project, endpoint) if endpoint.startswith(f"{MODELS}/") else None

    async def _call(
        self, scope: Any, key: KeyInForce, headers: ClientHeaders, endpoint: str, receive: Receive, send: Send
    ) -> None:
        body = await read_body(receive, headers, self._limit)
        if body is None:
            return
        request: ChatRequest | PlainRequest
        deployment, method = deployment_of(scope["path"]), scope["method"]
        if endpoint == CHAT or (endpoint == COMPLETIONS and method == "POST"):
            request = ChatRequest(body, headers.encoding, self._limit, endpoint, deployment)
        else:
            request = PlainRequest(method, endpoint, body, headers.kind, headers.encoding, self._limit, deployment)
        request.header_task = headers.task
        limited = key.max_concurrent is not None
        if limited:
            self._slots.take(key)
        watch = self.watchman.begin(receive)
        call = Call(key, headers, request, spool=self._spool, mode=self._mode, watch=watch)
        try:
            await self._answer(call, scope["query_string"].decode("latin-1"), send)
        except StepdownError as error:
            await self._refuse(call, error, send)
        except FAILURES as error:
            await self._broken(call, error, send)
        except asyncio.CancelledError:
            await self._cancelled(call, send)
        except Exception:  # a fault of ours: the client still gets an answer in OpenAI's shape
            log.exception("call %s failed in the gateway", call.id, extra={"call_id": call.id})
            if call.begun:
                raise
            await self._refuse(call, _INTERNAL, send)
        finally:
            self.watchman.end(watch)
            if limited:
                self._slots.give(key)

    async def _answer(self, call: Call, query: str, send: Send) -> None:
        project, request = call.key.project, call.request
        passing = call.key.upstream
        if passing is not None:
            call.unverified = not self._verified.knows(passing.spec.id, call.headers.credentials)
            decision = decide_passed(
                project, passing, request, request.model, request.endpoint, verified=not call.unverified
            )
        elif request.for_students:
            decision = decide(project, request.model, request)
        else:
            decision = decide_plain(project, request.model, request.endpoint)
        call.decided(decision)
        if decision.student is not None:
            reason = await self._by_student(call, decision.student, send)
            if reason is None:
                return
            call.fallback_reason = reason
            call.not_answered()
        if call.fallback_reason is not None:
            metrics.FALLBACKS.labels(call.fallback_reason).inc()
        await self._attempts.answer(call, query, send)
        if passing is not None and _took_the_key(call):
            self._verified.remember(passing.spec.id, call.headers.credentials)

    async def _by_student(self, call: Call, named: StudentInForce, send: Send) -> str | None:
        """None when the student has answered, else why the upstream has to."""
        engine = named.base_url or ""
        if self._resting.rests(engine):
            return "student_resting"
        try:
            reason = await student.answer(call, named, self._client, send, self._student_timeout_s)
        except asyncio.CancelledError:
            if call.begun:
                raise
            if call.watch.expired != "silence" or call.watch.gone:
                self._resting.failed(engine)
                raise
            call.watch.go_on()
            reason = "student_timeout"
        if reason == "student_timeout":
            self._resting.failed(engine)
        else:
            self._resting.answered(engine)
        return reason

    async def _refuse(self, call: Call, error: StepdownError, send: Send) -> None:
        """Answers in the place of whoever did not."""
        metrics.REFUSED.labels(error.code).inc()
        call.not_answered()
        call.served_by, call.status = "gateway", error.status
        call.record(str(error), error.code)
        await send_whole(send, error.status, [JSON, *call.own_headers()], error_body(call.request.endpoint, error))

    async def _broken(self, call: Call, error: Exception, send: Send) -> None:
        """Whoever was asked failed. What has begun cannot be mended: the client's connection is cut like ours was."""
        if not call.begun:
            await self._refuse(call, self._upstreams.failure(call, error), send)
            return
        call.cut = error.code if isinstance(error, TooLate) else "upstream_cut"
        call.record(error=f"{call.cut}: {error or type(error).__name__}")
        metrics.CUTS.labels(call.cut).inc()

    async def _cancelled(self, call: Call, send: Send) -> None:
        """The watchman ended the call; or the server does, which is not ours to stop."""
        if call.watch.expired or call.watch.gone:
            call.watch.task.uncancel()
        if call.watch.expired:
            await self._broken(call, call.too_late(), send)
            return
        call.cut = "client_hangup" if call.watch.gone else "gateway_shutdown"
        call.record(error=call.cut)
        if not call.watch.gone:
            raise asyncio.CancelledError


def _is_answered(endpoint: str, method: str) -> bool:
    if endpoint == CHAT:
        return method == "POST"
    return method in _METHODS and not {".", ".."} & set(unquote(endpoint).split("/"))


def _unknown(endpoint: str, method: str) -> StepdownError:
    if endpoint == CHAT or method not in _METHODS:
        return StepdownError(
            405, "method_not_allowed", f"{method} is not answered at /v1/{endpoint}.",
            hint="Chat completions are asked for by POST /v1/chat/completions.",
        )  # fmt: skip
    return StepdownError(404, "unknown_path", f"There is nothing at /v1/{endpoint}.", hint="Check the address.")


def _passing(key: KeyInForce | None, headers: ClientHeaders) -> KeyInForce:
    """The pass-through token, where it is one and the caller brings a key of its own."""
    if key is None or key.upstream is None:
        raise StepdownError(
            401, "invalid_pass_through", "The pass-through token in this address is not known here or was revoked.",
            hint="Use the base URL that the dashboard shows for it: …/p/sdp-…/v1.",
        )  # fmt: skip
    if not headers.credentials:
        raise StepdownError(
            401, "api_key_missing", f"No API key for {key.upstream.name} was sent.",
            hint="Keep sending your provider's own key: with a pass-through address it is relayed and never stored.",
        )  # fmt: skip
    return key


def _took_the_key(call: Call) -> bool:
    """Whether the caller's provider has answered as it answers those it knows. Lists of models are open to anybody."""
    passing, asked = call.key.upstream, call.asked
    own = passing is not None and asked is not None and asked.upstream.spec.id == passing.spec.id
    return own and call.served_by == "upstream" and call.request.whole and 200 <= call.status < 300
