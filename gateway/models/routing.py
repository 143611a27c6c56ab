"""Tables of who answers: upstreams, students, deployments, routes and their revisions."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt, Id, ProjectId


class Upstream(Base):
    """A provider that we relay to, with what its terms allow us to do with its answers."""

    __tablename__ = "upstream"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    name: Mapped[str]
    kind: Mapped[str]  # openai: relayed byte for byte | litellm: translated
    base_url: Mapped[str | None]  # up to and including /v1
    model: Mapped[str | None]  # what it judges and teaches with; None: as the app asked
    credential: Mapped[bytes | None]  # sealed with the master key
    train_on_output: Mapped[str] = mapped_column(default="unknown")  # allowed | forbidden | unknown
    judge_with: Mapped[str] = mapped_column(default="unknown")
    terms_source: Mapped[str | None]
    created_at: Mapped[CreatedAt]


class Student(Base):
    """A checkpoint released as a servable model version. Its manifest says what it can take."""

    __tablename__ = "student"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("task.id", ondelete="CASCADE"))
    run_id: Mapped[uuid.UUID]
    checkpoint_id: Mapped[uuid.UUID]
    evaluation_id: Mapped[uuid.UUID]
    name: Mapped[str]
    path: Mapped[str]  # merged weights, relative to STEPDOWN_HOME/models
    manifest: Mapped[
        dict[str, Any]
    ]  # {base_model, fingerprint, context_length, max_new_tokens, tools, response_format, …}
    created_at: Mapped[CreatedAt]


class Deployment(Base):
    """A student loaded in an engine. The supervisor makes `state` follow `wanted`."""

    __tablename__ = "deployment"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    student_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("student.id", ondelete="CASCADE"), index=True)
    wanted: Mapped[bool] = mapped_column(default=True)
    state: Mapped[str] = mapped_column(default="requested")  # requested | starting | ready | failed | stopped
    base_url: Mapped[str | None]  # of the engine, up to and including /v1
    error: Mapped[str | None]
    created_at: Mapped[CreatedAt]


class Route(Base):
    """How calls of one (alias, task) are answered. Task None: every other call of that alias; alias `*`: any name."""

    __tablename__ = "route"
    __table_args__ = (
        Index(
            "uq_route_project_alias_task",
            "project_id",
            "alias",
            "task_id",
            unique=True,
            postgresql_nulls_not_distinct=True,
        ),
    )

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    alias: Mapped[str]
    task_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("task.id", ondelete="CASCADE"))
    upstream_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("upstream.id"))
    upstream_model: Mapped[str | None]  # None: the alias itself
    revision_id: Mapped[uuid.UUID | None]  # the revision in force
    capture: Mapped[str] = mapped_column(default="full")  # full | metadata | off: the most that is kept of its calls
    sample: Mapped[float] = mapped_column(default=1.0)  # share of conversations that are captured in full
    retention_days: Mapped[int | None]  # of its calls, where shorter than the project's
    created_at: Mapped[CreatedAt]


class RouteFallback(Base):
    """A further upstream of a route, asked where those before it give no answer. `position` orders them, from 0."""

    __tablename__ = "route_fallback"

    route_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("route.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[ProjectId]
    upstream_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("upstream.id"))
    upstream_model: Mapped[str | None]  # None: the alias itself


class RouteRevision(Base):
    """A numbered change of a route, never changed. Rolling back appends the previous one again."""

    __tablename__ = "route_revision"
    __table_args__ = (UniqueConstraint("route_id", "number"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    route_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("route.id", ondelete="CASCADE"))
    number: Mapped[int]
    stage: Mapped[str]  # observe | shadow | canary | live
    share: Mapped[float]  # of calls that the student answers, 0 to 1
    student_id: Mapped[uuid.UUID | None]
    deployment_id: Mapped[uuid.UUID | None]
    evaluation_id: Mapped[uuid.UUID | None]  # the evidence; required with a student
    reason: Mapped[str]
    restores: Mapped[int | None]  # a rollback: the number of the revision that it put back
    created_at: Mapped[CreatedAt]
