"""Tables of narrow jobs: tasks and their versioned rubrics."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt, Id, ProjectId


class Task(Base):
    """A recurring prompt shape. Recognised by slug (header, metadata) or by fingerprint."""

    __tablename__ = "task"
    __table_args__ = (UniqueConstraint("project_id", "slug"), UniqueConstraint("project_id", "fingerprint"))

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    slug: Mapped[str]
    name: Mapped[str]
    fingerprint: Mapped[bytes | None]
    state: Mapped[str] = mapped_column(default="suggested")  # suggested | active | ignored
    system_preview: Mapped[str] = mapped_column(default="")
    created_at: Mapped[CreatedAt]


class Rubric(Base):
    """What a good answer is: weighted criteria, vetoes, deterministic checks. Never changed, only superseded."""

    __tablename__ = "rubric"
    __table_args__ = (UniqueConstraint("task_id", "version"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("task.id", ondelete="CASCADE"))
    version: Mapped[int]
    criteria: Mapped[list[Any]]  # [{name, question, weight}]
    vetoes: Mapped[list[Any]]  # [{name, question}]
    checks: Mapped[list[Any]]  # [{kind, …}]
    created_at: Mapped[CreatedAt]
