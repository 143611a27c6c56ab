"""Owns the OpenTelemetry span of each stored call, after the GenAI semantic conventions. Must not hold up storing.

Only with OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT; the SDK reads these and its other variables
itself. Spans go out in batches from a thread of the SDK; what a slow or dead collector does not take is dropped.
No span holds anything of a body: names, numbers and reasons alone.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from gateway.capture import repository
from gateway.capture.ingest import Parsed
from gateway.capture.repository import Answerer
from gateway.core.errors import StepdownError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger(__name__)
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_CLOSE_S = 3.0
_OPERATIONS = {
    "chat.completions": "chat",
    "responses": "chat",
    "messages": "chat",
    "completions": "text_completion",
    "embeddings": "embeddings",
}
_KINDS = {"anthropic": "anthropic", "azure": "azure.ai.openai"}
_HOSTS = {
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
}
"""Providers that speak OpenAI's wire and have a name of their own in the conventions."""

Sessions = Callable[[], AbstractContextManager[Session]]
Attributes = dict[str, str | bool | int | float | list[str]]


class Spans:
    """Makes a span of each call. `add` never raises and never waits for the collector."""

    def __init__(self, provider: TracerProvider, sessions: Sessions) -> None:
        self._provider = provider
        self._sessions = sessions
        self._tracer = provider.get_tracer("stepdown")
        self._failed = False

    def add(self, calls: Sequence[Parsed]) -> None:
        """Hands the calls' spans over; those of calls that are not to be kept are not made."""
        try:
            kept = [call for call in calls if call.envelope.capture != "off"]
            answerers = self._answerers(kept)
            for call in kept:
                self._span(call, answerers)
            self._failed = False
        except Exception:  # storing goes on whatever becomes of telemetry
            if not self._failed:
                log.exception("calls are stored, but their spans cannot be made")
            self._failed = True

    def close(self) -> None:
        """Sends what waits, for three seconds at most."""
        ending = threading.Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(_CLOSE_S)

    def _span(self, call: Parsed, answerers: Mapping[UUID, Answerer]) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        envelope = call.envelope
        answerer = answerers.get(envelope.student_id or envelope.upstream_id or envelope.id)
        attributes = attributes_of(call, answerer)
        carrier = {"traceparent": envelope.traceparent} if envelope.traceparent else {}
        span = self._tracer.start_span(
            f"{attributes['gen_ai.operation.name']} {call.values['alias']}".strip(),
            context=TraceContextTextMapPropagator().extract(carrier),
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=envelope.received_ns,
        )
        if "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))
        span.end(envelope.received_ns + envelope.latency_ns)

    def _answerers(self, calls: Sequence[Parsed]) -> Mapping[UUID, Answerer]:
        upstreams = {c.envelope.upstream_id for c in calls if c.envelope.upstream_id is not None}
        students = {c.envelope.student_id for c in calls if c.envelope.student_id is not None}
        try:
            with self._sessions() as session:
                return repository.answerers(session, upstreams, students)
        except (SQLAlchemyError, StepdownError):
            return {}  # the calls are stored; their spans say a little less


def spans(sessions: Sessions) -> Spans | None:
    """What makes spans; None where no collector is named, or the SDK does not take its settings.

    `sessions` opens one to look up by name who answered.
    """
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    try:
        resource = Resource.create({"service.name": "stepdown"}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except Exception:
        log.exception("OpenTelemetry cannot be set up; calls are stored without spans")
        return None
    return Spans(provider, sessions)


def attributes_of(call: Parsed, answerer: Answerer | None) -> Attributes:
    """A call's attributes, as the conventions name them; ours begin with `stepdown.`. What is not known is left out."""
    envelope, values = call.envelope, call.values
    known: dict[str, Any] = {
        "gen_ai.operation.name": _OPERATIONS.get(envelope.endpoint, envelope.endpoint),
        "gen_ai.provider.name": _provider(envelope.upstream_model or envelope.alias, answerer),
        "gen_ai.request.model": values["alias"],
        "gen_ai.request.stream": envelope.streamed,
        "gen_ai.response.model": call.model,
        "gen_ai.response.finish_reasons": [values["finish_reason"]] if values["finish_reason"] else None,
        "http.response.status_code": envelope.status,
        "error.type": envelope.cut or (str(envelope.status) if envelope.status >= 400 else None),
        "stepdown.call.id": str(envelope.id),
        "stepdown.project.id": str(envelope.project_id),
        "stepdown.task.id": str(values["task_id"]) if values["task_id"] else None,
        "stepdown.served_by": envelope.served_by,
        "stepdown.answerer": answerer.name if answerer else None,
        "stepdown.fallback_reason": envelope.fallback_reason,
        "stepdown.upstream_model": envelope.upstream_model,
        "stepdown.overhead_ms": values["overhead_ms"],
        "stepdown.cost_usd": float(values["cost"]) if values["cost"] is not None else None,
    }
    if call.usage is not None:
        known["gen_ai.usage.input_tokens"] = call.usage.prompt
        known["gen_ai.usage.output_tokens"] = call.usage.completion
        known["gen_ai.usage.cache_read.input_tokens"] = call.usage.cached
        known["gen_ai.usage.reasoning.output_tokens"] = call.usage.reasoning
    if envelope.streamed and envelope.ttfb_ns is not None:
        known["gen_ai.response.time_to_first_chunk"] = envelope.ttfb_ns / 1e9
    if answerer is not None and answerer.base_url:
        url = urlsplit(answerer.base_url)
        known["server.address"] = url.hostname
        known["server.port"] = url.port or (443 if url.scheme == "https" else 80)
    return {name: value for name, value in known.items() if value is not None}


def _provider(model: str, answerer: Answerer | None) -> str:
    """Who answered, by the conventions' names: a guess from the wire and the host, as those ask for."""
    if answerer is None or answerer.kind == "student":
        return "stepdown"
    if answerer.kind == "litellm":
        return model.partition("/")[0]
    host = urlsplit(answerer.base_url or "").hostname or ""
    return _KINDS.get(answerer.kind) or _HOSTS.get(host, "openai")
