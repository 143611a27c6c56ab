"""Owns the shapes of who may do what: sessions, projects, gateway keys."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from gateway.admin.schemas.common import Input, JsonObject, Shape
from gateway.capture.redaction import NAMES


class SignIn(Input):
    """The admin token that `stepdown up` prints."""

    token: str = Field(min_length=1, max_length=512)


class SessionOut(Shape):
    """Whether the caller's cookie is a session's: asked before anything else, so it answers strangers too."""

    signed_in: bool


class Me(Shape):
    """Who is signed in, and where an app should point its client."""

    via: Literal["token", "session"]
    version: str
    base_url: str = Field(description="What an app sets as its OpenAI base URL.")


class ProjectIn(Input):
    name: str = Field(min_length=1, max_length=100)


class ProjectPatch(Input):
    """What may change of a project. A field left out stays as it is."""

    retention_days: int | None = Field(
        None, ge=1, le=100_000, description="Days that captured calls are kept; null: for ever."
    )


class ProjectOut(Shape):
    id: UUID
    name: str
    retention_days: int | None
    created_at: datetime


class RedactionRule(Input):
    """What is taken out of a key's calls before they are kept: a rule by its name, or an expression of RE2."""

    name: str | None = Field(None, description=f"One of {', '.join(NAMES)}.")
    pattern: str | None = Field(None, max_length=1000)
    replacement: str | None = Field(None, max_length=200, description="Unset: [redacted].")


class KeyIn(Input):
    name: str = Field(min_length=1, max_length=100)
    capture: Literal["full", "metadata", "off"] = "full"
    max_concurrent: int | None = Field(
        None, ge=1, description="Calls under way at once, in each gateway process; unset: any number."
    )
    upstream_id: UUID | None = Field(None, description="Makes it a pass-through token to this upstream.")
    sample: float = Field(1.0, ge=0, le=1, description="Share of conversations that are captured in full.")
    redact: list[RedactionRule] = Field(default_factory=list)
    retention_days: int | None = Field(None, ge=1, le=100_000, description="Where shorter than the project's.")


class KeyPatch(Input):
    """What may change of a key. A field left out stays as it is."""

    capture: Literal["full", "metadata", "off"] | None = None
    max_concurrent: int | None = Field(None, ge=1, description="null: any number.")
    sample: float | None = Field(None, ge=0, le=1)
    redact: list[RedactionRule] | None = None
    retention_days: int | None = Field(None, ge=1, le=100_000, description="null: as the project's.")


class KeyOut(Shape):
    """A gateway key as the list shows it: never the key itself."""

    id: UUID
    name: str
    prefix: str
    capture: str = Field(description="full, metadata or off")
    max_concurrent: int | None
    upstream_id: UUID | None = Field(description="Of a pass-through token.")
    sample: float
    redact: list[JsonObject]
    retention_days: int | None
    created_at: datetime
    revoked_at: datetime | None


class KeyCreated(Shape):
    """A new key. This answer is the only place where `key` ever appears."""

    id: UUID
    key: str
