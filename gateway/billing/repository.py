"""SQL of prices and of the ledger. Entries are only ever added."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from gateway.core.db import copy_rows
from gateway.models import LedgerEntry, Price


def prices(session: Session, upstream_ids: Collection[UUID], student_ids: Collection[UUID]) -> Sequence[Price]:
    """Every price of these upstreams and students, past and future."""
    query = select(Price).where(or_(Price.upstream_id.in_(upstream_ids), Price.student_id.in_(student_ids)))
    return session.scalars(query).all()


def add_entries(session: Session, entries: list[dict[str, Any]]) -> None:
    """Adds charges; one whose `source_id` is charged already is left out."""
    if entries:
        session.execute(insert(LedgerEntry).on_conflict_do_nothing(index_elements=["source_id"]), entries)


def copy_entries(session: Session, entries: list[dict[str, Any]]) -> None:
    """Adds charges of calls that are stored in the same transaction, so that none can be there yet."""
    if len(entries) == 1:
        add_entries(session, entries)
    else:
        copy_rows(session, LedgerEntry, entries)


def spent(session: Session, project_id: UUID, run_id: UUID) -> Any:
    """USD charged to a run so far."""
    query = select(func.coalesce(func.sum(LedgerEntry.amount), 0)).where(
        LedgerEntry.project_id == project_id, LedgerEntry.run_id == run_id
    )
    return session.execute(query).scalar_one()
