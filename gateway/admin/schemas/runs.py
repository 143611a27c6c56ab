"""Owns the shapes of training: runs, their steps, rollouts and events."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from gateway.admin.schemas.common import Input, JsonObject, Money, Named, Shape
from gateway.runs.schemas import Bar, RunConfig


class RunIn(Input):
    """A run to start. Fields of `config` that are left out take the defaults."""

    config: RunConfig = Field(default_factory=RunConfig)
    judge_upstream_id: UUID | None = None
    bars: list[Bar] | None = Field(None, description="Declared before looking; unset: non-inferior by the judge.")


class PhaseOut(Shape):
    """How far one phase is. `tokens` are trained tokens."""

    name: str
    state: str = Field(description="pending, running, done, skipped, failed or cancelled")
    step: int
    planned: int
    seconds: float
    tokens: int


class RunRow(Shape):
    id: UUID
    task: Named
    state: str = Field(description="queued, running, paused, succeeded, failed or cancelled")
    phase: str
    error: str | None
    steps_done: int
    steps_planned: int
    judge_spend: Money
    base_model: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class DriftOut(Shape):
    """How far a learning phase has moved the model, measured at its end."""

    phase: str
    step: int
    weights: float | None = Field(description="‖ΔW‖/‖W‖ since the phase began, of the adapted layers.")
    moved: float | None = Field(
        description="Share of tokens of the teacher's answers on validation whose log-prob moved more than 0.1 nats."
    )
    kl: float | None = Field(description="KL on general text between the beginning of the phase and its end, in nats.")
    forgotten_kl: float | None = Field(description="KL on general text between the base model and now, in nats.")
    forgotten: float | None = Field(
        description="Nats a token by which general answers have become less likely than to the base model."
    )


class RunDetail(RunRow):
    phases: list[PhaseOut]
    drift: list[DriftOut] = Field(description="Of each learning phase that has ended, in their order.")
    metrics: JsonObject = Field(description="Figures of the last finished step of the phase under way, by name.")
    config: JsonObject
    bars: list[Any]
    judge: Named | None
    rubric_version: int | None
    dataset_version: int | None
    dataset_counts: JsonObject | None
    attempts: int
    evaluation_id: UUID | None


class StepOut(Shape):
    phase: str
    step: int
    metrics: JsonObject
    seconds: float
    created_at: datetime


class RolloutOut(Shape):
    index: int
    anchor: bool = Field(description="The teacher's captured answer, blind among the others.")
    completion: str
    tokens: int
    finish_reason: str | None
    reward: float | None
    advantage: float | None
    criteria: JsonObject
    reason: str | None
    kept: bool


class GroupOut(Shape):
    """One prompt and what was sampled for it."""

    group: int
    row_id: UUID
    kept: bool
    prompt: list[Any]
    rollouts: list[RolloutOut]


class StepRollouts(Shape):
    step: int | None = Field(description="The step shown: the one asked for, else the latest; null: there is none.")
    steps: list[int] = Field(description="Every step that has rollouts.")
    groups: list[GroupOut]


class TokenOut(Shape):
    id: int
    text: str = Field(description="What it adds to the text; a special token's name.")
    trained: bool
    special: bool = Field(description="Marks turns, and is part of no text.")
    logprob: float | None = Field(description="In nats: of a rollout its sampler's, of an example the model's before.")


class SequenceOut(Shape):
    """One sequence that a step learned from. `left_out` tokens before the first are not shown."""

    index: int
    row_id: UUID
    group: int | None
    reward: float | None
    advantage: float | None
    left_out: int
    tokens: list[TokenOut]


class TokenSteps(Shape):
    phase: str
    steps: list[int]


class StepTokens(Shape):
    phases: list[TokenSteps] = Field(description="Where there is something to look at, in the order of the phases.")
    phase: str | None = Field(description="What is shown: as asked, else the latest; null: there is nothing.")
    step: int | None
    sequences: list[SequenceOut]


class EventOut(Shape):
    id: UUID
    kind: str
    message: str
    created_at: datetime
