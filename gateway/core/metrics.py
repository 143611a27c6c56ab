"""Owns the Prometheus metrics of the gateway. Must hold no rules."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client import REGISTRY, Counter, Gauge, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

_SECONDS = (
    0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
    1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0,
)  # fmt: skip
_BOUNDS_NS = [round(bound * 1e9) for bound in _SECONDS]
_LE = [*map(floatToGoString, _SECONDS), "+Inf"]


class AnsweredCalls(Collector):
    """Counts and times of answered calls, kept in plain numbers until somebody asks: every call pays for this.

    Prometheus' own histograms and counters took 5 µs a call, this takes one. To be used from one thread.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[str, int], int] = {}
        self._overhead = [0] * len(_LE)
        self._latency = [0] * len(_LE)
        self._overhead_ns = self._latency_ns = 0

    def add(self, served_by: str, status: int, overhead_ns: int, latency_ns: int) -> None:
        """One more call. Times in nanoseconds."""
        answered = (served_by, status)
        self._calls[answered] = self._calls.get(answered, 0) + 1
        self._overhead[bisect_left(_BOUNDS_NS, overhead_ns)] += 1
        self._latency[bisect_left(_BOUNDS_NS, latency_ns)] += 1
        self._overhead_ns += overhead_ns
        self._latency_ns += latency_ns

    def collect(self) -> Iterator[Metric]:
        """The figures in Prometheus' form."""
        calls = CounterMetricFamily(
            "stepdown_calls", "Calls answered, by who answered and with which status.", labels=["served_by", "status"]
        )
        for (served_by, status), number in self._calls.copy().items():
            calls.add_metric([served_by, str(status)], number)
        yield calls
        yield _histogram(
            "stepdown_overhead_seconds", "Our own part of a call's time.", self._overhead, self._overhead_ns
        )
        yield _histogram(
            "stepdown_latency_seconds", "From the request's last byte to the answer's.", self._latency, self._latency_ns
        )


def _histogram(name: str, documentation: str, counts: list[int], total_ns: int) -> Metric:
    family, below, buckets = HistogramMetricFamily(name, documentation), 0, []
    for bound, number in zip(_LE, counts, strict=True):
        below += number
        buckets.append((bound, below))
    family.add_metric([], buckets, total_ns / 1e9)
    return family


# A counter's age is not worth a line for each of its labels.
disable_created_metrics()  # type: ignore[no-untyped-call]
ANSWERED = AnsweredCalls()
REGISTRY.register(ANSWERED)
REFUSED = Counter("stepdown_refused", "Calls that the gateway itself refused, by reason.", ["code"])
IN_FLIGHT = Gauge("stepdown_calls_in_flight", "Calls being answered now.")
FALLBACKS = Counter("stepdown_student_fallbacks", "Calls meant for a student that the upstream answered.", ["reason"])
UPSTREAM_FALLBACKS = Counter(
    "stepdown_upstream_fallbacks", "Upstreams passed over for the next one of the route, by reason.", ["reason"]
)
UPSTREAM_RETRIES = Counter(
    "stepdown_upstream_retries", "Requests sent to the same upstream once more, by what had failed.", ["cause"]
)
UPSTREAM_RESTING = Gauge(
    "stepdown_upstream_resting", "1 for an upstream that rests after failing, until it answers.", ["upstream", "id"]
)
HANGUPS = Counter("stepdown_client_hangups", "Clients that went away before their answer was whole.")
CUTS = Counter("stepdown_upstream_cuts", "Answers that an upstream did not finish, by cause.", ["cause"])
CAPTURE_LOST = Counter("stepdown_capture_lost", "Served calls whose record could not be written.")
SPOOL_WAITING = Gauge("stepdown_spool_waiting_bytes", "Captured bytes that the writer has not stored yet.")
SNAPSHOT_AGE = Gauge("stepdown_snapshot_age_seconds", "Age of the routes and keys in force.")
SNAPSHOT_FAILURES = Counter("stepdown_snapshot_failures", "Looks for changed routes that failed.")
SUMMED_GAUGES = ("stepdown_calls_in_flight",)
"""Gauges that several processes have a share in each; of the others each sees the same thing."""
