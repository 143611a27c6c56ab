"""/metrics says what happened: how many calls, how long they took, in which part of it we stood in the way."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gateway.capture.segments import Segments
from gateway.core.metrics import AnsweredCalls
from gateway.core.settings import settings
from tests.gateway.world import World, request_body

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_a_call_is_counted_where_its_time_belongs() -> None:
    registry, calls = CollectorRegistry(), AnsweredCalls()
    registry.register(calls)
    calls.add("upstream", 200, 50_000, 900_000_000)
    calls.add("upstream", 200, 50_001, 900_000_000)
    calls.add("gateway", 502, 130_000_000_000, 130_000_000_000)
    found = samples(generate_latest(registry).decode())
    assert found["stepdown_calls_total", (("served_by", "upstream"), ("status", "200"))] == 2
    assert found["stepdown_calls_total", (("served_by", "gateway"), ("status", "502"))] == 1

    def at_most(seconds: str, name: str = "overhead") -> float:
        return found[f"stepdown_{name}_seconds_bucket", (("le", seconds),)]

    assert [at_most(s) for s in ("5e-05", "0.0001", "120.0", "+Inf")] == [1, 2, 2, 3]
    assert [at_most(s, "latency") for s in ("0.5", "1.0", "+Inf")] == [0, 2, 3]
    assert found["stepdown_overhead_seconds_count", ()] == 3
    assert round(found["stepdown_latency_seconds_sum", ()], 6) == 131.8


def test_calls_through_the_gateway_are_in_its_metrics(world: World) -> None:
    before = samples(world.client.get("/metrics").text)
    for _ in range(3):
        assert world.post(request_body()).status_code == 200
    after = samples(world.client.get("/metrics").text)

    def grown(name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return after[key] - before.get(key, 0)

    assert grown("stepdown_calls_total", served_by="upstream", status="200") == 3
    assert grown("stepdown_overhead_seconds_count") == 3
    assert grown("stepdown_latency_seconds_bucket", le="+Inf") == 3
    assert 0 < grown("stepdown_overhead_seconds_sum") < grown("stepdown_latency_seconds_sum")


def test_the_clients_trace_travels_with_the_record_and_to_the_upstream(world: World) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    world.post(request_body(), traceparent=trace)
    world.post(request_body())
    assert [seen.header("traceparent") for seen in world.upstream.seen] == [trace, None]
    segments = Segments(settings().spool_dir)
    [name] = segments.names()
    records = [frame.record for frame in segments.read(name, 0).frames]
    assert [record and record.envelope.traceparent for record in records] == [trace, None]


def test_every_metric_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[3] / "README.md").read_text()
    ours = [m for m in REGISTRY.collect() if m.name.startswith("stepdown_")]
    names = [f"{m.name}_total" if m.type == "counter" else m.name for m in ours]
    assert len(names) > 12
    assert [name for name in names if f"| `{name}" not in manual] == []
