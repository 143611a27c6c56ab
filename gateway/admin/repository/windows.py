"""Owns where a period begins in an index over UUIDv7 ids, and what counts as a good call."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, literal_column, not_, or_

from gateway.models import Call


def first_id_at(moment: datetime) -> UUID:
    """The smallest UUIDv7 of that millisecond: `id >= first_id_at(t)` prunes partitions, `received_at >= t` cannot."""
    return UUID(int=int(moment.timestamp() * 1000) << 80)


def succeeded() -> ColumnElement[bool]:
    """Whether a call was answered wholly and well."""
    return and_(Call.status < 400, Call.complete)


def failed() -> ColumnElement[bool]:
    """Whether it was not: as the index of failed calls says it."""
    return or_(Call.status >= literal_column("400"), not_(Call.complete))
