"""Owns what the gateway says of its own state: to probes (/readyz), to the dashboard, to `stepdown status`.

Ready means that calls can be answered. That holds with the database down, once its routes were read.
"""

from __future__ import annotations

from gateway.admin.schemas.health import Health
from gateway.capture import status
from gateway.capture.spool import Spool
from gateway.core.settings import settings
from gateway.proxy.resting import Resting
from gateway.proxy.translator import TranslatorProcess
from gateway.routing.refresh import SnapshotHolder
from gateway.routing.snapshot import NamedUpstream


def health(snapshots: SnapshotHolder, translator: TranslatorProcess, spool: Spool, resting: Resting) -> Health:
    """The state now."""
    age = snapshots.age_s
    note = status.read(settings().spool_dir)
    upstreams = snapshots.current.upstreams if snapshots.current is not None else []
    failing = [upstream for upstream in upstreams if resting.in_trouble(upstream.spec.id)]
    return Health(
        ready=snapshots.current is not None and (translator.ready or not translator.wanted),
        database="reachable" if snapshots.failure is None else f"unreachable: {snapshots.failure}",
        routes="not read yet" if age is None else f"confirmed {age:.1f} s ago",
        translator="ready" if translator.ready else "starting" if translator.wanted else "not needed",
        capture="working" if spool.failure is None else f"failing: {spool.failure}",
        not_captured=spool.lost,
        writer="not running" if note is None else f"waiting: {note.failure}" if note.failure else "working",
        waiting_bytes=note.waiting_bytes if note else None,
        resting=[upstream.spec.id for upstream in failing],
        problems=[*_database(snapshots), *_upstreams(failing), *_capture(spool), *_writer(note)],
    )


def _database(snapshots: SnapshotHolder) -> list[str]:
    if snapshots.failure is None:
        return []
    return [f"PostgreSQL does not answer ({snapshots.failure}). Calls are relayed and captured meanwhile."]


def _upstreams(failing: list[NamedUpstream]) -> list[str]:
    return [
        f"Upstream {upstream.name} fails again and again. Where a route has fallbacks they answer, and a call tries it "
        "now and then."
        for upstream in failing
    ]


def _capture(spool: Spool) -> list[str]:
    calls = f"{spool.lost} call{'' if spool.lost == 1 else 's'}"
    if spool.failure is not None:
        return [
            f"Calls are answered but not captured: {spool.failure}; {calls} so far. "
            "Capture goes on by itself once the disk takes writes again."
        ]
    return [f"{calls} answered without being captured since the gateway started; see its log."] if spool.lost else []


def _writer(note: status.Note | None) -> list[str]:
    if note is None:
        return ["The writer does not run: captured calls wait on disk. See `stepdown status`."]
    if note.failure is None:
        return []
    return [f"Captured calls wait on disk ({note.waiting_bytes / 1e6:.1f} MB): {note.failure}."]
