"""Owns the shapes of who may do what: sessions, projects, gateway keys."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from gateway.admin.schemas.common import Input, Shape


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


class ProjectOut(Shape):
    id: UUID
    name: str
    created_at: datetime


class KeyIn(Input):
    name: str = Field(min_length=1, max_length=100)
    capture: Literal["full", "metadata", "off"] = "full"
    max_concurrent: int | None = Field(
        None, ge=1, description="Calls under way at once, in each gateway process; unset: any number."
    )


class KeyPatch(Input):
    """What may change of a key. A field left out stays as it is."""

    max_concurrent: int | None = Field(None, ge=1, description="null: any number.")


class KeyOut(Shape):
    """A gateway key as the list shows it: never the key itself."""

    id: UUID
    name: str
    prefix: str
    capture: str = Field(description="full, metadata or off")
    max_concurrent: int | None
    created_at: datetime
    revoked_at: datetime | None


class KeyCreated(Shape):
    """A new key. This answer is the only place where `key` ever appears."""

    id: UUID
    key: str
