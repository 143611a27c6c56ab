"""Owns what a run's judge has cost. Must not commit."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.models import LedgerEntry
from gateway.runs.repository import progress as repository


def so_far(session: Session, run_id: UUID) -> tuple[Decimal, int]:
    """USD and number of judge calls of the run until now."""
    return repository.judge_spend(session, run_id)


def add(session: Session, run_id: UUID, entry: LedgerEntry) -> Decimal:
    """Enters one judge call into the ledger and returns the run's spend with it. Needs no lease: it was spent."""
    session.add(entry)
    return repository.add_judge_spend(session, run_id, entry.amount)
