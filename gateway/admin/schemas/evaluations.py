"""Owns the shapes of evidence."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field

from gateway.admin.schemas.common import Input, Interval, Shape
from gateway.evaluations.gate import Outcome


class Judged(Shape):
    """Blind pairs against the teacher: win 1, tie ½, loss 0."""

    model_config = ConfigDict(extra="allow")

    win_rate: float | None = None
    n: int | None = None
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


class BarOutcomeOut(Shape):
    """What one bar says, in words and numbers."""

    name: str
    kind: str
    outcome: Outcome
    reason: str
    value: float | None
    low: float | None
    high: float | None
    bar: float | None = Field(description="What the lower end has to reach.")


class Gate(Shape):
    """Whether the evidence suffices: passed if every bar is, failed if one is, else undecided."""

    candidate: str
    outcome: Outcome
    passed: bool
    bars: list[BarOutcomeOut]


class EvaluationOut(Shape):
    id: UUID
    run_id: UUID
    state: str = Field(description="running or finished")
    passed: bool | None = Field(description="Whether the winner clears every bar; null: not decided.")
    gate: Gate | None = Field(description="What the gate says of the winner, once the evaluation has finished.")
    winner: str | None
    candidates: dict[str, CandidateOut]
    bars: list[Any]
    external: dict[str, dict[str, Interval]] = Field(description="By scorer, then by candidate or `teacher`.")
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


class ReleaseIn(Input):
    candidate: str | None = Field(None, max_length=100, description="Unset: the one that validation chose.")


class Released(Shape):
    student_id: UUID
    deployment_id: UUID
