"""Owns the shapes of who answers: upstreams, routes and their revisions, students, deployments."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from pydantic import AnyHttpUrl, Field, TypeAdapter, field_validator

from gateway.admin.schemas.common import Input, JsonObject, Money, Named, Shape
from gateway.providers.spec import UpstreamKind

Permission = Literal["allowed", "forbidden", "unknown"]
Stage = Literal["observe", "shadow", "canary", "live"]
_PRICE = Field(ge=Decimal(0), max_digits=20, decimal_places=10)


class PricesIn(Input):
    """USD per million tokens."""

    input_per_mtok: Decimal = _PRICE
    cached_input_per_mtok: Decimal | None = Field(
        None, ge=Decimal(0), max_digits=20, decimal_places=10, description="Unset: as other input."
    )
    output_per_mtok: Decimal = _PRICE


class PricesOut(Shape):
    """USD per million tokens, in force now."""

    input_per_mtok: Money
    cached_input_per_mtok: Money
    output_per_mtok: Money
    source: str
    effective_from: datetime


class UpstreamIn(Input):
    """A provider to relay to. Its key is sealed when stored and never returned."""

    name: str = Field(min_length=1, max_length=100)
    kind: UpstreamKind = Field("openai", description="The wire it speaks; `litellm`: translated for.")
    base_url: str | None = Field(
        None, description="Up to and including /v1; for Azure its resource, `?api-version=…` with it."
    )
    model: str | None = Field(None, description="What it judges and teaches with; unset: as the app asked.")
    api_key: str = Field("", description="The provider's key; may be empty where the provider asks for none.")
    train_on_output: Permission = "unknown"
    judge_with: Permission = "unknown"
    terms_source: str | None = Field(None, description="Where the two permissions are written.")
    prices: PricesIn | None = None

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value:
            TypeAdapter(AnyHttpUrl).validate_python(value)
            return value.rstrip("/")
        return None


class UpstreamPatch(Input):
    """What may change of an upstream. A field left out stays as it is; prices hold from now on."""

    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    train_on_output: Permission | None = None
    judge_with: Permission | None = None
    terms_source: str | None = None
    prices: PricesIn | None = None


class UpstreamOut(Shape):
    id: UUID
    name: str
    kind: str
    base_url: str | None
    model: str | None
    has_credential: bool
    train_on_output: str
    judge_with: str
    terms_source: str | None
    prices: PricesOut | None
    created_at: datetime


class FallbackIn(Input):
    """An upstream that is asked where those before it give no answer."""

    upstream_id: UUID
    upstream_model: str | None = Field(None, description="What it calls the model; unset: the alias.")


class FallbacksIn(Input):
    """Every further upstream of a route, in the order in which they are asked."""

    fallbacks: list[FallbackIn] = Field(max_length=8)


class RouteIn(Input):
    """How calls of one (alias, task) are answered."""

    alias: str = Field(min_length=1, max_length=200, description="The model name that the app sends; `*`: any.")
    upstream_id: UUID
    upstream_model: str | None = Field(None, description="What the upstream calls it; unset: the alias.")
    task_id: UUID | None = Field(None, description="Unset: every call of the alias that no other route takes.")
    fallbacks: list[FallbackIn] = Field(
        [], max_length=8, description="Asked in turn where the upstream gives no answer."
    )


class RoutePatch(Input):
    """What may be kept of a route's calls. A field left out stays as it is."""

    capture: Literal["full", "metadata", "off"] | None = None
    sample: float | None = Field(None, ge=0, le=1, description="Share of conversations that are captured in full.")
    retention_days: int | None = Field(None, ge=1, le=100_000, description="null: as the project's.")


class FallbackOut(Shape):
    upstream: Named
    upstream_model: str | None


class RouteCreated(Shape):
    id: UUID
    revision: int


class RevisionIn(Input):
    """The next revision of a route. A student needs the evaluation that speaks for it."""

    stage: Stage
    share: float = Field(ge=0, le=1, description="Of the calls that the student answers.")
    student_id: UUID | None = None
    evaluation_id: UUID | None = None
    reason: str = Field(min_length=1, max_length=500)


class RollbackIn(Input):
    reason: str = Field("rolled back by hand", min_length=1, max_length=500)


class RevisionNumber(Shape):
    number: int


class RevisionOut(Shape):
    id: UUID
    number: int
    stage: str
    share: float
    student: Named | None
    deployment_id: UUID | None
    evaluation_id: UUID | None
    reason: str
    created_at: datetime


class RouteOut(Shape):
    id: UUID
    alias: str
    task: Named | None
    upstream: Named
    upstream_model: str | None
    fallbacks: list[FallbackOut]
    capture: str = Field(description="full, metadata or off: the most that is kept of its calls")
    sample: float
    retention_days: int | None
    revision: RevisionOut | None
    created_at: datetime


class DeploymentOut(Shape):
    id: UUID
    student_id: UUID
    wanted: bool
    state: str = Field(description="requested, starting, ready, failed or stopped")
    base_url: str | None
    error: str | None
    created_at: datetime


class StudentOut(Shape):
    id: UUID
    name: str
    task: Named
    run_id: UUID
    evaluation_id: UUID
    manifest: JsonObject
    deployment: DeploymentOut | None
    created_at: datetime
