"""Owns what the gateway says of its own state."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, Field


class Health(BaseModel):
    """The answer of /readyz and of /api/health."""

    ready: bool = Field(description="Whether calls can be answered.")
    database: str
    routes: str
    translator: str
    capture: str
    not_captured: int = Field(description="Calls served without a record since this gateway started.")
    writer: str
    waiting_bytes: int | None = Field(description="Captured bytes not in the database yet; null: nobody counts them.")
    resting: list[UUID] = Field(description="Upstreams that failed again and again, and have not answered since.")
    problems: list[str] = Field(description="What is wrong, for people: what happened, and what to do.")
