"""Owns the rules of a dataset and the example. Must not read the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class DatasetRules(BaseModel):
    """Shares of the three splits. They are fixed when the dataset is made, so no input ever changes its side."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: float
    validation: float
    test: float


PRACTICE = "practice"
"""The side of prompts of the train split whose calls have no answer to learn from: a judge needs none."""


@dataclass(frozen=True)
class Minimums:
    """Fewest distinct examples of each split that are worth a run."""

    train: int = 60
    validation: int = 10
    test: int = 30


@dataclass(frozen=True)
class Example:
    """One row: what the app sent, what the teacher answered ({}: nothing to learn from), and its origin (law 5)."""

    input_hash: bytes
    call_id: UUID
    upstream_id: UUID | None
    messages: list[Any]
    tools: list[Any] | None
    target: dict[str, Any]
    response_format: Any = None
    fingerprint: bytes | None = None
