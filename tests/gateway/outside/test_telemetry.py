"""Each stored call is a span at the collector, in the words of the GenAI conventions, and without a word of a body."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from gateway.capture.writer import Writer
from gateway.core.db import session_scope
from gateway.core.ports import free_port
from gateway.core.settings import settings
from gateway.models import Call
from tests.gateway.world import (
    MockUpstream,
    Reply,
    World,
    add_student,
    chat_body,
    request_body,
    stored_calls,
    stream_events,
    streamed,
)  # fmt: skip

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Collector:
    """Takes OTLP over HTTP. `answer`: the status it gives; `asked` is set once it was."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.status = 200
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.asked.set()
                collector.go_on.wait(30)
                if self.path == "/v1/traces":
                    collector.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def spans(self) -> list[Span]:
        return [
            s
            for request in self.requests
            for r in request.resource_spans
            for scope in r.scope_spans
            for s in scope.spans
        ]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    yield made
    made.go_on.set()
    made.server.shutdown()


def store() -> None:
    writer = Writer(settings().spool_dir)
    while writer.advance():
        pass
    writer.close()


def attributes(span: Span) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        kind = value.WhichOneof("value")
        return [plain(v) for v in value.array_value.values] if kind == "array_value" else getattr(value, kind)

    return {pair.key: plain(pair.value) for pair in span.attributes}


def test_a_stream_is_a_span_under_the_clients_own(world: World, collector: Collector) -> None:
    world.upstream.reply = streamed(*stream_events("bil", "ling"))
    ask = request_body("my private words", stream=True)
    answer = world.post(ask, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    store()
    [span] = collector.spans
    assert (span.name, span.kind) == ("chat gpt-4o", Span.SPAN_KIND_CLIENT)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, "00f067aa0ba902b7")
    found = attributes(span)
    host, port = world.upstream.base_url.removeprefix("http://").removesuffix("/v1").split(":")
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.request.stream": True,
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 4,
        "server.address": host,
        "server.port": int(port),
        "http.response.status_code": 200,
        "stepdown.call.id": answer.headers["x-stepdown-request-id"],
        "stepdown.served_by": "upstream",
        "stepdown.answerer": "shop-frontier",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["stepdown.cost_usd"] == pytest.approx((20 * 2.5 + 4 * 10) / 1e6)
    assert found["gen_ai.response.time_to_first_chunk"] > 0
    assert "error.type" not in found
    [request] = collector.requests
    assert b"private" not in request.SerializeToString()
    assert b"billing" not in request.SerializeToString()
    resource = {a.key: a.value.string_value for a in request.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "stepdown"
    with session_scope() as session:
        [call] = session.query(Call).all()
        assert span.end_time_unix_nano - span.start_time_unix_nano == pytest.approx(call.latency_ms * 1e6, rel=1e-6)


def test_failures_say_what_failed_and_calls_that_are_not_kept_say_nothing(world: World, collector: Collector) -> None:
    world.upstream.reply = Reply([b'{"error": {"message": "my private words"}}'], status=429)
    world.post(request_body())
    world.upstream.reply = streamed(*stream_events("never")[:2], cut=True)
    with pytest.raises(Exception, match="incomplete"):
        world.post(request_body(stream=True))
    world.upstream.reply = Reply([chat_body()])
    world.post(request_body(), **{"x-stepdown-capture": "off"})
    world.post(request_body(), **{"x-stepdown-capture": "metadata"})
    store()
    failed, cut, good = collector.spans
    assert [attributes(span).get("error.type") for span in (failed, cut, good)] == ["429", "upstream_cut", None]
    assert [span.status.code for span in (failed, cut, good)] == [2, 2, 0]
    assert failed.status.message == ""
    assert attributes(good)["gen_ai.usage.input_tokens"] == 20, "told by the envelope where bodies are not kept"
    assert b"private" not in b"".join(r.SerializeToString() for r in collector.requests)


def test_a_students_span_names_the_student(world: World, collector: Collector) -> None:
    engine = MockUpstream()
    name = add_student(world.rows, engine.base_url)
    world.refresh()
    world.post(request_body())
    engine.stop()
    store()
    [span] = collector.spans
    found = attributes(span)
    assert (found["gen_ai.provider.name"], found["stepdown.served_by"], found["stepdown.answerer"]) == (
        "stepdown", "student", name,
    )  # fmt: skip
    assert "stepdown.task.id" in found


def test_names_are_guessed_from_wire_and_host(world: World, collector: Collector) -> None:
    from gateway.capture.repository import Answerer
    from gateway.capture.telemetry import _provider

    for name, kind, base_url, model in [
        ("anthropic", "anthropic", "https://api.anthropic.com/v1", "claude"),
        ("azure.ai.openai", "azure", "https://x.openai.azure.com", "gpt-4o"),
        ("groq", "openai", "https://api.groq.com/openai/v1", "llama"),
        ("openai", "openai", "http://localhost:11434/v1", "llama"),
        ("gemini", "litellm", None, "gemini/flash"),
    ]:
        assert _provider(model, Answerer("x", kind, base_url)) == name


@pytest.mark.parametrize("how", ["away", "refuses", "silent"])
def test_a_failing_collector_holds_up_nothing(
    how: str, world: World, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "away":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://127.0.0.1:{free_port()}/v1/traces")
    elif how == "refuses":
        collector.status = 503
    else:
        collector.go_on.clear()
    writer = Writer(settings().spool_dir)
    for _ in range(3):
        world.post(request_body())
        while writer.advance():
            pass
    assert len(stored_calls()) == 3
    closing = threading.Thread(target=writer.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()


def test_without_a_collectors_address_there_is_no_telemetry(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert Writer(settings().spool_dir)._spans is None
