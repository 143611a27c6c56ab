"""Tables of training: runs with their lease, steps, rollouts, sequences, checkpoints, events."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt, Id, ProjectId


class Run(Base):
    """One training job and its lease. Every write of a trainer checks `lease_epoch`: the fence."""

    __tablename__ = "run"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    task_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("task.id", ondelete="CASCADE"), index=True)
    rubric_id: Mapped[uuid.UUID | None]
    dataset_version_id: Mapped[uuid.UUID | None]
    judge_upstream_id: Mapped[uuid.UUID | None]
    state: Mapped[str] = mapped_column(
        default="queued", index=True
    )  # queued | running | paused | succeeded | failed | cancelled
    phase: Mapped[str] = mapped_column(default="freeze")  # freeze | sft | grpo | sft_all | evaluate | done
    config: Mapped[dict[str, Any]]
    bars: Mapped[list[Any]]  # declared before looking
    base_model: Mapped[str]
    error: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(default=0)  # consecutive failures without a finished step
    judge_spend: Mapped[Decimal] = mapped_column(default=Decimal(0))
    lease_owner: Mapped[str | None]
    lease_epoch: Mapped[int] = mapped_column(default=0)
    lease_expires_at: Mapped[datetime | None]
    created_at: Mapped[CreatedAt]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class RunStep(Base):
    """One finished step of a phase with its metrics: written once, under the epoch that held the lease."""

    __tablename__ = "run_step"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    phase: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[ProjectId]
    epoch: Mapped[int]
    metrics: Mapped[dict[str, Any]]
    seconds: Mapped[float]
    created_at: Mapped[CreatedAt]


class Rollout(Base):
    """One sampled completion of a group, with its scores and the judge's reasons."""

    __tablename__ = "rollout"
    __table_args__ = (Index("ix_rollout_run_id_step_group_index", "run_id", "step", "group", "index"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    step: Mapped[int]
    group: Mapped[int]
    index: Mapped[int]  # -1: the teacher's answer, the anchor
    row_id: Mapped[uuid.UUID]  # the dataset row whose prompt this answers
    completion: Mapped[str]
    tokens: Mapped[int]
    finish_reason: Mapped[str | None]
    reward: Mapped[float | None]  # None: the group was dropped
    advantage: Mapped[float | None]
    criteria: Mapped[dict[str, Any]]
    reason: Mapped[str | None]
    kept: Mapped[bool]


class TrainedSequence(Base):
    """A sequence that a step learned from, token by token; of each phase a few steps' are kept."""

    __tablename__ = "trained_sequence"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    phase: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[ProjectId]
    row_id: Mapped[uuid.UUID]  # the dataset row whose prompt it begins with
    group: Mapped[int | None]  # of GRPO
    reward: Mapped[float | None]
    advantage: Mapped[float | None]
    left_out: Mapped[int]  # tokens before the first that is kept
    tokens: Mapped[list[Any]]  # [id, text, trained, special, log-prob or null] each


class Checkpoint(Base):
    """Saved weights of a phase at a step, with the validation score that choice goes by."""

    __tablename__ = "checkpoint"
    __table_args__ = (UniqueConstraint("run_id", "phase", "step"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    phase: Mapped[str]
    step: Mapped[int]
    path: Mapped[str]  # relative to STEPDOWN_HOME/runs
    validation: Mapped[dict[str, Any]]
    chosen: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[CreatedAt]


class RunEvent(Base):
    """A line of a run's story: phase changes, restarts, alarms, failures."""

    __tablename__ = "run_event"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str]
    message: Mapped[str]
    created_at: Mapped[CreatedAt]
