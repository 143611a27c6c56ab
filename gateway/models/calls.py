"""Tables of captured traffic: calls, content-addressed bodies, how far the spool was read."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import REAL, BigInteger, ColumnElement, ForeignKey, Index, literal_column, text
from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt

# The words of a call's previews as its index has them; with these signs turned into spaces, an address, a path or a tag
# is found by its parts. A query has to say the same, or the index is not used; the casts are as PostgreSQL shows them.
CALL_WORDS: ColumnElement[Any] = literal_column(
    "to_tsvector('simple'::regconfig, translate((preview::text || ' '::text) || answer_preview::text, "
    "'@./_-+<>&'::text, '         '::text))"
)


class Call(Base):
    """One captured request and its response. Partitioned by month through the time inside its UUIDv7."""

    __tablename__ = "call"
    __table_args__ = (
        Index("ix_call_project_id_id", "project_id", "id"),
        Index("ix_call_project_id_task_id_id", "project_id", "task_id", "id"),
        Index("ix_call_project_id_fingerprint", "project_id", "fingerprint"),
        Index(
            "ix_call_project_id_trajectory_id",
            "project_id",
            "trajectory",
            "id",
            postgresql_where=text("trajectory IS NOT NULL"),
        ),
        Index("ix_call_parent_id", "parent_id", postgresql_where=text("parent_id IS NOT NULL")),
        Index("ix_call_words", CALL_WORDS, postgresql_using="gin"),
        Index("ix_call_failed", "project_id", "id", postgresql_where=text("status >= 400 OR NOT complete")),
        Index("ix_call_elsewhere", "project_id", "served_by", "id", postgresql_where=text("served_by <> 'upstream'")),
        {"postgresql_partition_by": "RANGE (id)"},
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    key_id: Mapped[uuid.UUID | None]
    task_id: Mapped[uuid.UUID | None]
    received_at: Mapped[datetime]
    endpoint: Mapped[str]  # chat.completions
    alias: Mapped[str]  # the model name that the app sent
    served_by: Mapped[str]  # upstream | student | gateway (an error of ours)
    upstream_id: Mapped[uuid.UUID | None]
    student_id: Mapped[uuid.UUID | None]
    route_revision_id: Mapped[uuid.UUID | None]
    fallback_reason: Mapped[str | None]
    streamed: Mapped[bool]
    status: Mapped[int]
    complete: Mapped[bool]  # the whole answer was received
    trainable: Mapped[bool]  # complete, successful and whole: may become an example
    finish_reason: Mapped[str | None]
    error: Mapped[str | None]
    latency_ms: Mapped[float] = mapped_column(REAL)
    ttfb_ms: Mapped[float | None] = mapped_column(REAL)
    overhead_ms: Mapped[float] = mapped_column(REAL)
    prompt_tokens: Mapped[int]
    cached_tokens: Mapped[int]
    completion_tokens: Mapped[int]
    reasoning_tokens: Mapped[int]
    cost: Mapped[Decimal | None]  # None: no price was known
    fingerprint: Mapped[bytes | None]  # of system template, tools, response format
    input_hash: Mapped[bytes | None]  # of all messages, tools and response format: what splits go by
    preview: Mapped[str]  # start of the last user message
    answer_preview: Mapped[str]
    tags: Mapped[dict[str, Any]]  # the request's metadata
    trajectory: Mapped[str | None]  # what the app says that the call is part of
    # The request without its items. They are the first `shared` of what the parent was asked and answered, then those
    # whose hashes are in `items`, end to end; their bodies lie in `blob`. See gateway.capture.bodies.
    request: Mapped[dict[str, Any] | None]
    parent_id: Mapped[uuid.UUID | None]
    shared: Mapped[int | None]
    items: Mapped[bytes | None]
    response: Mapped[bytes | None] = mapped_column(deferred=True)  # the assembled response as JSON, compressed


class Blob(Base):
    """A message or another large part of requests, once per project by the first half of its SHA-256, compressed."""

    __tablename__ = "blob"

    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    hash: Mapped[bytes] = mapped_column(primary_key=True)
    data: Mapped[bytes]


class BlobDictionary(Base):
    """What a project's bodies have in common, for zstd. `id` is the one in the frames compressed with it."""

    __tablename__ = "blob_dictionary"

    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    data: Mapped[bytes]
    created_at: Mapped[CreatedAt]


class SpoolCursor(Base):
    """How many bytes of a spool segment are in the database: moved in the transaction that inserts them."""

    __tablename__ = "spool_cursor"

    segment: Mapped[str] = mapped_column(primary_key=True)
    offset: Mapped[int]
    updated_at: Mapped[datetime]
