"""SQL of captured calls: partitions, bodies, rows, how far the spool was read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, delete, func, or_, select, text, union, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from gateway.capture.partitions import Month, months_around
from gateway.core.clock import now
from gateway.core.db import copy_rows
from gateway.models import (
    ApiKey,
    Blob,
    BlobDictionary,
    Call,
    Project,
    Route,
    RouteRevision,
    SpoolCursor,
    Student,
    Task,
    Upstream,
)  # fmt: skip

CHANNEL = "stepdown_calls"
_PARTITION_LOCK = 0x57E9CA11
_INSERT_BLOBS = text(
    "INSERT INTO blob (project_id, hash, data)"
    " SELECT :project, given.hash, given.data FROM unnest(CAST(:hashes AS bytea[]), CAST(:data AS bytea[]))"
    " AS given(hash, data) ON CONFLICT DO NOTHING"
)
_DELETE_UNUSED = text(
    "WITH mine AS (SELECT items, request FROM call WHERE project_id = :project AND items IS NOT NULL),"
    " used AS ("
    "  SELECT substring(items FROM at * 16 + 1 FOR 16) AS hash FROM mine, generate_series(0, length(items) / 16 - 1) at"
    "  UNION SELECT decode(field.value ->> '$blob', 'hex') FROM mine, jsonb_each(request) field"
    "  WHERE jsonb_typeof(field.value) = 'object' AND field.value ? '$blob')"
    " DELETE FROM blob WHERE project_id = :project"
    " AND (CAST(:among AS bytea[]) IS NULL OR hash = ANY(CAST(:among AS bytea[])))"
    " AND NOT EXISTS (SELECT FROM used WHERE used.hash = blob.hash)"
)
_ANCESTRY = text(
    "WITH RECURSIVE line AS ("
    " SELECT id, parent_id, shared, items, 0 AS depth FROM call WHERE project_id = :project AND id = :call"
    " UNION ALL SELECT c.id, c.parent_id, c.shared, c.items, line.depth + 1"
    " FROM line JOIN call c ON c.id = line.parent_id AND c.project_id = :project)"
    " SELECT id, parent_id, shared, items FROM line ORDER BY depth DESC"
)


@dataclass(frozen=True)
class Answerer:
    """Who answers calls. `kind`: the upstream's, or `student`."""

    name: str
    kind: str
    base_url: str | None


def answerers(session: Session, upstreams: Collection[UUID], students: Collection[UUID]) -> dict[UUID, Answerer]:
    """These upstreams and students, by id."""
    found = {
        row.id: Answerer(row.name, row.kind, row.base_url)
        for row in session.execute(
            select(Upstream.id, Upstream.name, Upstream.kind, Upstream.base_url).where(Upstream.id.in_(upstreams))
        )
    }
    named = session.execute(select(Student.id, Student.name).where(Student.id.in_(students))) if students else ()
    return found | {id: Answerer(name, "student", None) for id, name in named}


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
    """Adds calls. Several must all be new; a single one that is there already is left as it is."""
    if len(rows) == 1:
        session.execute(insert(Call).on_conflict_do_nothing(index_elements=["id"]), rows)
    else:
        copy_rows(session, Call, rows)


def insert_blobs(session: Session, project_id: UUID, bodies: dict[bytes, bytes]) -> None:
    """Adds compressed bodies by hash. In one order for all writers, so that none can deadlock."""
    if bodies:
        hashes = sorted(bodies)
        given = {"project": project_id, "hashes": hashes, "data": [bodies[digest] for digest in hashes]}
        session.execute(_INSERT_BLOBS, given)


def blobs(session: Session, project_id: UUID, hashes: Collection[bytes]) -> dict[bytes, bytes]:
    """Stored bodies by hash, still compressed."""
    if not hashes:
        return {}
    rows = session.execute(select(Blob.hash, Blob.data).where(Blob.project_id == project_id, Blob.hash.in_(hashes)))
    return {row.hash: row.data for row in rows}


def response(session: Session, project_id: UUID, call_id: UUID) -> bytes | None:
    """A call's answer, still compressed."""
    return session.scalar(select(Call.response).where(Call.project_id == project_id, Call.id == call_id))


def ancestry(session: Session, project_id: UUID, call_id: UUID) -> Sequence[Row[Any]]:
    """A call and the calls that it goes on from, the oldest first: id, parent_id, shared, items."""
    return session.execute(_ANCESTRY, {"project": project_id, "call": call_id}).all()


def keep_bodies(session: Session, project_ids: Iterable[UUID]) -> None:
    """Until this transaction ends no call or body of these projects is deleted: what is there may be referred to."""
    for project_id in project_ids:
        session.execute(select(func.pg_advisory_xact_lock_shared(_bodies_lock(project_id))))


def take_bodies(session: Session, project_id: UUID) -> None:
    """Waits until nobody refers to the project's calls and bodies; then only this transaction does, until it ends."""
    session.execute(select(func.pg_advisory_xact_lock(_bodies_lock(project_id))))


def _bodies_lock(project_id: UUID) -> int:
    return int.from_bytes(project_id.bytes[8:], "big", signed=True)


def calls(session: Session, project_id: UUID, ids: Collection[UUID]) -> Sequence[Call]:
    """Calls of the project by id."""
    return session.scalars(select(Call).where(Call.project_id == project_id, Call.id.in_(ids))).all()


def children(session: Session, project_id: UUID, ids: Collection[UUID]) -> Sequence[Call]:
    """The calls that go on from these."""
    return session.scalars(select(Call).where(Call.parent_id.in_(ids), Call.project_id == project_id)).all()


def delete_calls(session: Session, project_id: UUID, ids: Collection[UUID]) -> None:
    """Deletes calls, and nothing else."""
    session.execute(delete(Call).where(Call.project_id == project_id, Call.id.in_(ids)))


def delete_unused_blobs(session: Session, project_id: UUID, among: Collection[bytes] | None) -> None:
    """Deletes the bodies that no call of the project refers to, of all or `among` these."""
    given = {"project": project_id, "among": list(among) if among is not None else None}
    session.execute(_DELETE_UNUSED, given)


def expired(session: Session, project_id: UUID, moment: datetime, most: int) -> list[UUID]:
    """Up to `most` calls older than their project, key or route lets them be, the oldest first."""
    project = session.get_one(Project, project_id)
    wanted = []
    if project.retention_days is not None:
        wanted.append(Call.id < _first_id(moment, project.retention_days))
    keys = select(ApiKey).where(ApiKey.project_id == project_id, ApiKey.retention_days.is_not(None))
    for key in session.scalars(keys):
        wanted.append(and_(Call.key_id == key.id, Call.id < _first_id(moment, key.retention_days or 0)))
    routes = select(Route).where(Route.project_id == project_id, Route.retention_days.is_not(None))
    for route in session.scalars(routes):
        revisions = select(RouteRevision.id).where(RouteRevision.route_id == route.id)
        old = Call.id < _first_id(moment, route.retention_days or 0)
        wanted.append(and_(Call.route_revision_id.in_(revisions), old))
    if not wanted:
        return []
    query = select(Call.id).where(Call.project_id == project_id, or_(*wanted)).order_by(Call.id).limit(most)
    return list(session.scalars(query))


def _first_id(moment: datetime, days: int) -> UUID:
    """The smallest UUIDv7 of `days` before a moment."""
    return UUID(int=int((moment - timedelta(days=days)).timestamp() * 1000) << 80)


def projects_that_forget(session: Session) -> list[UUID]:
    """The projects of which some calls are kept for a limited time."""
    limited = union(
        *(select(table.project_id).where(table.retention_days.is_not(None)) for table in (ApiKey, Route)),
        select(Project.id).where(Project.retention_days.is_not(None)),
    )
    return list(session.scalars(limited))


def drop_empty_months(session: Session, before: Month) -> None:
    """Drops the partitions of months before this one that hold nothing any more."""
    names = session.scalars(
        text("SELECT c.relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'call'::regclass")
    ).all()
    for name in names:
        if name < before.partition and not session.scalar(text(f"SELECT EXISTS (SELECT FROM {name})")):  # noqa: S608
            session.execute(text(f"DROP TABLE {name}"))


def existing(session: Session, call_ids: Collection[UUID]) -> set[UUID]:
    """Which of these calls are there."""
    return set(session.scalars(select(Call.id).where(Call.id.in_(call_ids)))) if call_ids else set()


def dictionary(session: Session, project_id: UUID, dictionary_id: int) -> bytes | None:
    """A dictionary of the project."""
    query = select(BlobDictionary.data).where(
        BlobDictionary.project_id == project_id, BlobDictionary.id == dictionary_id
    )
    return session.scalar(query)


def latest_dictionary(session: Session, project_id: UUID) -> bytes | None:
    """The project's newest dictionary."""
    query = select(BlobDictionary.data).where(BlobDictionary.project_id == project_id)
    return session.scalar(query.order_by(BlobDictionary.created_at.desc()).limit(1))


def add_dictionary(session: Session, project_id: UUID, dictionary_id: int, data: bytes) -> None:
    """Adds a dictionary."""
    row = {"project_id": project_id, "id": dictionary_id, "data": data, "created_at": now()}
    session.execute(insert(BlobDictionary).values(row).on_conflict_do_nothing())


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
