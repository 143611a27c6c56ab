"""Owns the Prometheus metrics of the gateway and of its writer. Must hold no rules."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120)

CALLS = Counter("stepdown_calls", "Calls answered, by who answered and with which status.", ["served_by", "status"])
REFUSED = Counter("stepdown_refused", "Calls that the gateway itself refused, by reason.", ["code"])
OVERHEAD = Histogram("stepdown_overhead_seconds", "Our own part of a call's time.", buckets=_SECONDS)
LATENCY = Histogram("stepdown_latency_seconds", "From the request's last byte to the answer's.", buckets=_SECONDS)
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
