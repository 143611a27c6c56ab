"""SQL of the capture bench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import psycopg
from sqlalchemy import text

from gateway.core.db import session_scope


@dataclass(frozen=True)
class Counted:
    """Answered calls that are not in the database, calls and charges that are there more than once, and so on."""

    calls_lost: int
    calls_doubled: int
    charges_lost: int
    charges_doubled: int


def count(url: str, answered: Mapping[str, str]) -> Counted:
    """Compares what clients saw, ids by marker, with what is stored. Raises psycopg.OperationalError."""
    with psycopg.connect(url) as connection:
        calls = connection.execute("SELECT preview, array_agg(id::text) FROM call GROUP BY preview").fetchall()
        charges = connection.execute(
            "SELECT c.preview, count(*) FROM ledger_entry l JOIN call c ON c.id = l.call_id GROUP BY c.preview"
        ).fetchall()
    ids, charged = dict(calls), dict(charges)
    return Counted(
        calls_lost=sum(id not in ids.get(marker, ()) for marker, id in answered.items()),
        calls_doubled=sum(len(found) > 1 for marker, found in ids.items() if marker.startswith("call ")),
        charges_lost=sum(not charged.get(marker) for marker in answered),
        charges_doubled=sum(times > 1 for marker, times in charged.items() if marker.startswith("call ")),
    )


def stored_bytes() -> dict[str, int]:
    """Bytes of the tables that hold captured calls and bodies: the rows with what is too long for them, and all of it
    with indexes."""
    with session_scope() as session:
        found = session.execute(
            text(
                "SELECT pg_relation_size(c.oid) + coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) AS rows,"
                " pg_total_relation_size(c.oid) AS total FROM pg_class c WHERE c.relkind = 'r' AND"
                " (c.relname IN ('blob', 'blob_dictionary') OR c.relname ~ '^call_[0-9]{4}_[0-9]{2}$')"
            )
        ).all()
    return {"rows": sum(row.rows for row in found), "total": sum(row.total for row in found)}
