"""Owns the shapes of money, volume and time over a period, and of the overview."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

from pydantic import Field

from gateway.admin.schemas.common import Money, Shape


class UsageTotals(Shape):
    """Counts of a period. Latencies in milliseconds over successful calls; null without any."""

    calls: int
    failed: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    spend: Money
    p50_ms: float | None
    p95_ms: float | None


class UsageByDay(UsageTotals):
    day: date


class UsageByAlias(UsageTotals):
    alias: str


class UsageByServer(UsageTotals):
    served_by: str
    name: str | None


class UsageByDayServer(Shape):
    day: date
    served_by: str
    calls: int
    spend: Money


class UsageOut(Shape):
    """What a period cost. Call money is the ledger's; `judge_spend` is what scoring cost on top."""

    since: datetime
    days: int
    totals: UsageTotals
    judge_spend: Money
    uncaptured_spend: Money = Field(description="Of calls that were charged but not captured; in no other number here.")
    by_day: list[UsageByDay]
    by_alias: list[UsageByAlias]
    by_served_by: list[UsageByServer]
    by_day_served_by: list[UsageByDayServer]


class Setup(Shape):
    """How far a project has come: each is a step of the overview's list."""

    upstream: bool
    route: bool
    key: bool
    call: bool
    task: bool
    run: bool
    student: bool
    live: bool


class HourVolume(Shape):
    hour: datetime
    upstream: int
    student: int
    failed: int
    p50_ms: float | None


class StudentLine(Shape):
    """A student as the overview shows it: what it answers now."""

    id: UUID
    name: str
    task_id: UUID
    task_name: str
    stage: str | None
    share: float | None
    calls: int
    p50_ms: float | None


class OverviewOut(Shape):
    setup: Setup
    calls_total: int
    last_day: UsageTotals
    student_calls: int
    hours: list[HourVolume]
    students: list[StudentLine]
