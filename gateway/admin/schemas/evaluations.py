"""Owns the shapes of evidence."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field

from gateway.admin.schemas.common import Input, Interval, JsonObject, Shape


class Judged(Shape):
    """Blind pairs against the teacher: win 1, tie ½, loss 0."""

    model_config = ConfigDict(extra="allow")

    win_rate: float | None = None
    low: float | None = None
    high: float | None = None
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None


class CandidateOut(Shape):
    model_config = ConfigDict(extra="allow")

    n: int
    checkpoint_id: UUID | None = None
    agreement: Interval | None = Field(None, description="Share of answers that match the reference.")
    judged: Judged | None = None


class EvaluationOut(Shape):
    id: UUID
    run_id: UUID
    state: str = Field(description="running or finished")
    passed: bool | None = Field(description="Whether the winner clears every bar; null: not decided.")
    outcome: JsonObject | None = Field(description="The gate's words, bar by bar.")
    winner: str | None
    candidates: dict[str, CandidateOut]
    bars: list[Any]
    external: JsonObject
    created_at: datetime
    finished_at: datetime | None


class OutputOut(Shape):
    """One answer beside its reference. `score`: win 1, tie ½, loss 0, null where it was not judged."""

    row: UUID
    candidate: str
    input: list[Any] = Field(description="The messages, as the app sent them.")
    output: str
    reference: str
    matches: bool
    score: float | None
    reason: str | None


class ExternalIn(Input):
    """Right or wrong by your own scorer, per row of the test split."""

    name: str = Field(min_length=1, max_length=100)
    candidate: str = Field(min_length=1, max_length=100)
    results: dict[UUID, bool] = Field(min_length=1)


class Gate(Shape):
    """Whether the evidence suffices, bar by bar."""

    model_config = ConfigDict(extra="allow")

    passed: bool | None


class Released(Shape):
    student_id: UUID
    deployment_id: UUID
