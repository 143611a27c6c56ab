"""Tables of who may call: projects and their gateway keys."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt, Id, ProjectId


class Project(Base):
    """The wall between tenants: every row below belongs to exactly one project."""

    __tablename__ = "project"

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(unique=True)
    retention_days: Mapped[int | None]  # of captured calls; None: for ever
    created_at: Mapped[CreatedAt]


class ApiKey(Base):
    """A gateway key, or with `upstream_id` a pass-through token: its callers bring that provider's key themselves.

    Only its SHA-256 is kept; `prefix` is what people recognise it by.
    """

    __tablename__ = "api_key"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    name: Mapped[str]
    prefix: Mapped[str]
    hash: Mapped[bytes] = mapped_column(unique=True)
    upstream_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("upstream.id", ondelete="CASCADE"))
    capture: Mapped[str] = mapped_column(default="full")  # full | metadata | off
    sample: Mapped[float] = mapped_column(default=1.0)  # share of conversations that are captured in full
    redact: Mapped[list[Any]] = mapped_column(default=list)  # rules of gateway.capture.redaction
    retention_days: Mapped[int | None]  # where shorter than the project's
    max_concurrent: Mapped[int | None]  # calls under way at once, in each gateway process; None: any number
    created_at: Mapped[CreatedAt]
    revoked_at: Mapped[datetime | None]
