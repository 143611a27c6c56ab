"""Owns the state of one call on its way: who answers, when what happened, what was received, its record."""

from __future__ import annotations

import logging
from time import perf_counter_ns, time_ns

from gateway.capture import assemble
from gateway.capture.record import Envelope
from gateway.capture.spool import Spool
from gateway.capture.tally import tokens_in
from gateway.core import metrics
from gateway.core.ids import new_id
from gateway.providers.usage import usage_of
from gateway.proxy.client import TooLate
from gateway.proxy.headers import ClientHeaders, Headers, header_value
from gateway.proxy.keeping import Bodies, capture_mode, in_sample, redacted
from gateway.proxy.plain import PlainRequest
from gateway.proxy.watch import Watch
from gateway.proxy.wire import ChatRequest
from gateway.routing.policy import Decision
from gateway.routing.snapshot import Asked, KeyInForce

log = logging.getLogger(__name__)
HUNG_UP = 499
"""Recorded where the client went away before there was a status."""


class Call:
    """One call.

    `begun`: the client was sent something. `encoding`: the answer's content-encoding. `asked`: the upstream that is
    asked, or was asked last. `fallback_reason`: why those that were meant to answer before do not. `tried`: why none of
    several upstreams did. `unverified`: the caller's key is its provider's, who has not taken it yet.
    """

    __slots__ = (
        "_spool", "asked", "begun", "cut", "decision", "encoding", "fallback_reason", "first_ns", "headers", "id",
        "key", "last_ns", "mode", "pieces", "received_ns", "recorded", "redacted", "request", "sent_ns", "served_by",
        "started_ns", "status", "tried", "unverified", "wait_ns", "watch",
    )  # fmt: skip

    def __init__(
        self,
        key: KeyInForce,
        headers: ClientHeaders,
        request: ChatRequest | PlainRequest,
        *,
        spool: Spool,
        mode: str,
        watch: Watch,
    ) -> None:
        self.id = new_id()
        self.received_ns = time_ns()
        self.started_ns = perf_counter_ns()
        self.key = key
        self.headers = headers
        self.request = request
        self.mode = capture_mode(mode, key.capture, headers.capture, request.capture)
        self._keep(key.sample)
        self.unverified = False
        self.decision: Decision | None = None
        self.asked: Asked | None = None
        self.fallback_reason: str | None = None
        self.served_by = "gateway"
        self.status = HUNG_UP
        self.pieces: list[bytes] = []
        self.sent_ns = self.first_ns = self.last_ns = 0
        self.wait_ns = 0
        self.cut: str | None = None
        self.begun = False
        self.recorded = self.redacted = False
        self.encoding: str | None = None
        self.tried = ""
        self.watch = watch
        self._spool = spool

    def asks(self, asked: Asked) -> None:
        """This upstream is to answer."""
        self.served_by, self.asked = "upstream", asked

    def sent(self) -> None:
        """The request leaves for whoever answers."""
        self.sent_ns = perf_counter_ns()
        self.watch.await_answer()

    def arrived(self, piece: bytes) -> None:
        """A piece of the answer came in."""
        self.watch.await_more()
        self.last_ns = perf_counter_ns()
        if not self.first_ns:
            self.first_ns = self.last_ns
        self.pieces.append(piece)

    def not_answered(self) -> None:
        """Whoever was asked gave nothing that can be used: forget it, but not the time it took."""
        if self.sent_ns:
            self.wait_ns += perf_counter_ns() - self.sent_ns
        self.sent_ns = self.first_ns = self.last_ns = 0
        self.encoding = None
        self.pieces = []

    def too_late(self) -> TooLate:
        """Which limit passed."""
        if self.watch.expired == "total":
            return TooLate("upstream_total_timeout")
        return TooLate("upstream_idle_timeout" if self.begun or self.first_ns else "upstream_timeout")

    def own_headers(self) -> Headers:
        """The headers that we add to an answer."""
        headers = [(b"x-stepdown-request-id", str(self.id).encode()), (b"x-stepdown-served-by", self._server())]
        revision = self.decision.route.revision if self.decision else None
        if revision is not None:
            headers.append((b"x-stepdown-route-revision", b"%d" % revision.number))
        if self.headers.capture is not None:
            headers.append((b"x-stepdown-capture", self.mode.encode()))
        return headers

    def _server(self) -> bytes:
        if self.served_by == "student" and self.decision is not None and self.decision.student is not None:
            return header_value(f"student:{self.decision.student.name}")
        if self.served_by == "upstream" and self.asked is not None:
            return header_value(f"upstream:{self.asked.upstream.name}")
        return b"gateway"

    def record(self, error: str | None = None, code: str | None = None) -> None:
        """Appends the call to the spool, once. To be called before the last byte of the answer leaves.

        `error` goes into the record alone: it may quote what was sent. The log gets the `code`.
        """
        if self.recorded:
            return
        self.recorded = self.watch.answered = True
        now = perf_counter_ns()
        waited = self.wait_ns + ((self.last_ns or now) - self.sent_ns if self.sent_ns else 0)
        latency = now - self.started_ns
        metrics.ANSWERED.add(self.served_by, self.status, latency - waited, latency)
        if self.status >= 400 or self.cut:
            self._say(code or self.cut or self.tried, latency)
        request, response = self._kept()
        self._spool.append(self._envelope(error, latency, waited), request, response)

    def decided(self, decision: Decision) -> None:
        """Who is to answer. The route may let less be kept than the key does."""
        self.decision, self.fallback_reason = decision, decision.fallback_reason
        route = decision.route
        if route.capture != "full" or route.sample < 1:
            self.mode = capture_mode(self.mode, route.capture)
            self._keep(route.sample)

    def _keep(self, share: float) -> None:
        if share >= 1 or self.mode != "full":
            return
        request, headers = self.request, self.headers
        if not in_sample(share, headers.trajectory, request.raw, headers.encoding, request.name):
            self.mode = "metadata"

    def _kept(self) -> tuple[bytes, list[bytes]]:
        """What is kept of the bodies; sets `mode` and `cut` as that needs."""
        if self.unverified and not 200 <= self.status < 300:
            self.mode = capture_mode(self.mode, "metadata")
            # A stranger names no task and no trajectory.
            self.request.header_task = self.request.metadata_task = self.headers.trajectory = None
        if self.mode != "full":
            return b"", []
        if self.key.redactor is None:
            return self.request.raw, self.pieces
        bodies = Bodies(self.request.raw, self.pieces, self.cut)
        kept = redacted(self.key.redactor, bodies, (self.headers.encoding, self.encoding), self.request.name)
        if kept is None:
            self.mode = "metadata"
            return b"", []
        self.redacted, self.cut = True, kept.cut
        return kept.request, kept.response

    def _say(self, why: str, latency: int) -> None:
        """The one line in the log of a call that failed. A client may go as it likes: that is no failure."""
        level = logging.INFO if self.cut == "client_hangup" else logging.WARNING
        name = self.asked.upstream.name if self.asked else "none"
        log.log(
            level, "call %s: %d %s, answered by %s, upstream %s, after %.0f ms",
            self.id, self.status, why or "as the upstream answered", self.served_by, name, latency / 1e6,
            extra={"call_id": self.id},
        )  # fmt: skip

    def _envelope(self, error: str | None, latency: int, waited: int) -> Envelope:
        decision, request = self.decision, self.request
        usage, finish_reason = (None, None) if self.mode == "full" else self._summary()
        route = decision.route if decision else None
        asked = self.asked if self.served_by == "upstream" else None
        student = decision.student if decision and self.served_by == "student" else None
        return Envelope(
            id=self.id,
            project_id=self.key.project.id,
            key_id=self.key.id,
            received_ns=self.received_ns,
            alias=request.model,
            task_id=decision.task_id if decision else None,
            task_slug=request.task_slug,
            served_by=self.served_by,
            upstream_id=asked.upstream.spec.id if asked else None,
            student_id=student.id if student else None,
            route_revision_id=route.revision.id if route and route.revision else None,
            fallback_reason=self.fallback_reason,
            streamed=request.stream,
            status=self.status,
            request_encoding=None if self.redacted else self.headers.encoding,
            response_encoding=None if self.redacted else self.encoding,
            capture=self.mode,
            cut=self.cut,
            error=error,
            latency_ns=latency,
            ttfb_ns=self.first_ns - self.started_ns if self.first_ns else None,
            overhead_ns=latency - waited,
            usage=usage,
            finish_reason=finish_reason,
            upstream_model=asked.model if asked else None,
            endpoint=request.name,
            traceparent=self.headers.traceparent,
            trajectory=self.headers.trajectory,
        )

    def _summary(self) -> tuple[dict[str, int], str | None]:
        """Tokens and finish reason, where the bodies are not kept for the writer to read them from."""
        body, finish_reason = b"".join(self.pieces), None
        if not self.request.whole:
            usage = tokens_in(body, self.encoding)
        else:
            answer = assemble.received(body, self.encoding, self.request.name)
            usage = usage_of(answer.response or {})
            finish_reason = answer.finish_reason if answer.whole else None
        tokens = {
            "prompt": usage.prompt, "cached": usage.cached,
            "completion": usage.completion, "reasoning": usage.reasoning,
        }  # fmt: skip
        return tokens, finish_reason
