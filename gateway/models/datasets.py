"""Tables of training data: datasets and their frozen versions."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt, Id, ProjectId


class Dataset(Base):
    """The rules by which calls of a task become examples. Split thresholds are fixed when it is made."""

    __tablename__ = "dataset"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("task.id", ondelete="CASCADE"))
    name: Mapped[str]
    rules: Mapped[dict[str, Any]]  # split shares, filters
    created_at: Mapped[CreatedAt]


class DatasetVersion(Base):
    """An immutable snapshot: content hash, ordered rows, counts, provenance."""

    __tablename__ = "dataset_version"
    __table_args__ = (UniqueConstraint("dataset_id", "version"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"))
    version: Mapped[int]
    content_hash: Mapped[bytes]
    counts: Mapped[dict[str, Any]]  # {train, validation, test, practice, duplicates, untrainable, forbidden}
    rules: Mapped[dict[str, Any]]
    test_openings: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[CreatedAt]


class DatasetRow(Base):
    """One example of a frozen version: messages, target, split, and the call it came from."""

    __tablename__ = "dataset_row"
    __table_args__ = (
        UniqueConstraint("version_id", "position"),
        Index("ix_dataset_row_version_id_split_position", "version_id", "split", "position"),
    )

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    version_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("dataset_version.id", ondelete="CASCADE"))
    position: Mapped[int]
    split: Mapped[str]  # train | validation | test | practice
    input_hash: Mapped[bytes]
    call_id: Mapped[uuid.UUID]
    upstream_id: Mapped[uuid.UUID | None]  # whose output the target is
    messages: Mapped[list[Any]]
    tools: Mapped[list[Any] | None]
    target: Mapped[dict[str, Any]]  # the assistant message; {} of practice
