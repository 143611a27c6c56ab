"""Tables of money: prices over time and the append-only ledger."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt, Id, ProjectId


class Price(Base):
    """USD per million tokens of an upstream's model or of a student, from a moment on."""

    __tablename__ = "price"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    upstream_id: Mapped[uuid.UUID | None] = mapped_column(index=True)
    student_id: Mapped[uuid.UUID | None] = mapped_column(index=True)
    model: Mapped[str | None]  # None: any model of this upstream
    input_per_mtok: Mapped[Decimal]
    cached_input_per_mtok: Mapped[Decimal]
    output_per_mtok: Mapped[Decimal]
    source: Mapped[str]  # where the number comes from
    effective_from: Mapped[datetime]
    created_at: Mapped[CreatedAt]


class LedgerEntry(Base):
    """One charge, never changed. `source_id` makes it idempotent: the call's id, or the judge call's key."""

    __tablename__ = "ledger_entry"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    source_id: Mapped[uuid.UUID] = mapped_column(unique=True)
    kind: Mapped[str]  # call | judge
    call_id: Mapped[uuid.UUID | None]
    run_id: Mapped[uuid.UUID | None] = mapped_column(index=True)
    upstream_id: Mapped[uuid.UUID | None]
    student_id: Mapped[uuid.UUID | None]
    amount: Mapped[Decimal]  # USD
    price: Mapped[dict[str, Any]]  # the price as it was, as text, with its id
    usage: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]
