"""SQL of captured calls: partitions, bodies, rows, how far the spool was read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from gateway.capture.blobs import compress
from gateway.capture.partitions import Month, months_around
from gateway.core.clock import now
from gateway.models import Blob, Call, SpoolCursor, Task

CHANNEL = "stepdown_calls"
_PARTITION_LOCK = 0x57E9CA11


def ensure_partitions(session: Session, months: Iterable[Month] = ()) -> None:
    """Makes the partitions of the previous, this and the next month, and of `months`, where they are missing."""
    for month in sorted({*months_around(now()), *months}):
        if session.execute(select(func.to_regclass(month.partition))).scalar_one() is not None:
            continue
        # Two makers at once would collide in the catalogue; the lock goes with the transaction.
        session.execute(select(func.pg_advisory_xact_lock(_PARTITION_LOCK)))
        low, high = month.bounds
        session.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS {month.partition} PARTITION OF call "
                f"FOR VALUES FROM ('{low}') TO ('{high}')"
            )
        )


def insert_calls(session: Session, rows: list[dict[str, Any]]) -> None:
    """Adds calls; one that is there already is left as it is."""
    if rows:
        session.execute(insert(Call).on_conflict_do_nothing(index_elements=["id"]), rows)


def insert_blobs(session: Session, bodies: dict[tuple[UUID, bytes], bytes]) -> None:
    """Adds bodies under (project, hash), compressed. In one order for all writers, so that none can deadlock."""
    if bodies:
        rows = [
            {"project_id": project_id, "hash": digest, "size": len(body), "data": compress(body)}
            for (project_id, digest), body in sorted(bodies.items())
        ]
        session.execute(insert(Blob).on_conflict_do_nothing(), rows)


def blobs(session: Session, project_id: UUID, hashes: Collection[bytes]) -> dict[bytes, bytes]:
    """Stored bodies by hash, still compressed."""
    rows = session.execute(select(Blob.hash, Blob.data).where(Blob.project_id == project_id, Blob.hash.in_(hashes)))
    return {row.hash: row.data for row in rows}


def cursors(session: Session) -> dict[str, int]:
    """How far each segment was read."""
    return {cursor.segment: cursor.offset for cursor in session.scalars(select(SpoolCursor))}


def move_cursor(session: Session, segment: str, start: int, end: int) -> bool:
    """Moves a segment's cursor, if it stands where the caller thinks it does."""
    if start == 0:
        row = {"segment": segment, "offset": end, "updated_at": now()}
        made = insert(SpoolCursor).values(row).on_conflict_do_nothing().returning(SpoolCursor.segment)
        return session.execute(made).one_or_none() is not None
    moved = (
        update(SpoolCursor)
        .where(SpoolCursor.segment == segment, SpoolCursor.offset == start)
        .values(offset=end, updated_at=now())
        .returning(SpoolCursor.segment)
    )
    return session.execute(moved).one_or_none() is not None


def forget_cursor(session: Session, segment: str) -> None:
    """Drops the cursor of a segment whose file is gone."""
    session.execute(delete(SpoolCursor).where(SpoolCursor.segment == segment))


def tasks(session: Session, project_ids: Collection[UUID]) -> Sequence[Task]:
    """Every task of these projects."""
    return session.scalars(select(Task).where(Task.project_id.in_(project_ids)).order_by(Task.id)).all()


def count_unassigned(session: Session, project_id: UUID, fingerprints: Collection[bytes]) -> dict[bytes, int]:
    """Calls without a task, by prompt shape."""
    rows = session.execute(
        select(Call.fingerprint, func.count())
        .where(Call.project_id == project_id, Call.fingerprint.in_(fingerprints), Call.task_id.is_(None))
        .group_by(Call.fingerprint)
    )
    return {fingerprint: count for fingerprint, count in rows if fingerprint is not None}


def notify(session: Session, payload: str) -> None:
    """Tells listeners of `stepdown_calls`, when the transaction commits."""
    session.execute(select(func.pg_notify(CHANNEL, payload)))
