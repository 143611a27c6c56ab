"""Tables of evidence: evaluations on the test split and every output behind them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from gateway.models.base import Base, CreatedAt, Id, ProjectId


class Evaluation(Base):
    """Candidates of a run compared on the test split against bars that were declared before looking."""

    __tablename__ = "evaluation"

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), unique=True)
    dataset_version_id: Mapped[uuid.UUID]
    state: Mapped[str] = mapped_column(default="running")  # running | finished
    bars: Mapped[list[Any]]
    # {candidate: {checkpoint_id, n, agreement: {value, low, high}, judged: {win_rate, low, high, wins, ties, losses}}}
    candidates: Mapped[dict[str, Any]]
    external: Mapped[dict[str, Any]]  # {name: {candidate: {value, low, high, n}}}, from the user's own scorer
    winner: Mapped[str | None]  # the candidate that validation chose
    created_at: Mapped[CreatedAt]
    finished_at: Mapped[datetime | None]


class EvaluationOutput(Base):
    """One candidate's answer to one test prompt, with the judge's word on the pair (candidate, teacher)."""

    __tablename__ = "evaluation_output"
    __table_args__ = (UniqueConstraint("evaluation_id", "candidate", "row_id"),)

    id: Mapped[Id]
    project_id: Mapped[ProjectId]
    evaluation_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("evaluation.id", ondelete="CASCADE"))
    candidate: Mapped[str]  # base | sft | sft_all | grpo
    row_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("dataset_row.id", ondelete="CASCADE"))
    output: Mapped[str]
    matches: Mapped[bool]  # exactly the teacher's answer (as JSON where it is JSON)
    score: Mapped[float | None]  # win 1, tie ½, loss 0; None: not judged
    reason: Mapped[str | None]
