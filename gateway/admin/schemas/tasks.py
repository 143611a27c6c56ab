"""Owns the shapes of narrow jobs."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from gateway.admin.schemas.common import Input, JsonObject, Money, Named, Shape
from gateway.runs.schemas import Bar, RunConfig


class TaskRow(Shape):
    """A task as the list shows it."""

    id: UUID
    slug: str
    name: str
    state: str = Field(description="suggested, active or ignored")
    system_preview: str
    created_at: datetime
    calls: int
    trainable_calls: int
    student_calls: int
    spend: Money
    last_call_at: datetime | None
    p50_ms: float | None
    p95_ms: float | None


class TaskPatch(Input):
    name: str | None = Field(None, min_length=1, max_length=100)
    state: Literal["suggested", "active", "ignored"] | None = None


class AliasVolume(Shape):
    alias: str
    calls: int


class DayVolume(Shape):
    day: date
    upstream: int
    student: int
    failed: int
    spend: Money


class RubricOut(Shape):
    id: UUID
    version: int
    criteria: list[Any]
    vetoes: list[Any]
    checks: list[Any]
    created_at: datetime


class DatasetVersionOut(Shape):
    id: UUID
    dataset: str
    version: int
    counts: JsonObject
    test_openings: int
    created_at: datetime


class RunConfigOut(RunConfig):
    """A configuration with every field there."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class RunDefaults(Shape):
    """What the form to start a run is filled with."""

    config: RunConfigOut
    bars: list[Bar]
    judges: list[Named] = Field(description="Upstreams whose terms allow judging.")
    teachers_forbidden: list[Named] = Field(description="Upstreams of this task whose answers may not be trained on.")


class TaskDetail(TaskRow):
    aliases: list[AliasVolume]
    days: list[DayVolume]
    rubric: RubricOut | None
    dataset_versions: list[DatasetVersionOut]
    run_defaults: RunDefaults
