"""Owns the shape of a rubric as people write it. Must not read the database."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Question(BaseModel):
    """Something a judge answers about one output. Its name is the key of the answer."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=60)
    question: str = Field(min_length=1, max_length=2000)


class Criterion(Question):
    """A question answered between 0 and 1; the weights of a rubric are normalised to sum to 1."""

    weight: float = Field(default=1.0, gt=0)


class RubricContent(BaseModel):
    """Criteria, vetoes (true zeroes the reward) and deterministic checks, which cost no call."""

    model_config = ConfigDict(extra="forbid")

    criteria: list[Criterion] = Field(min_length=1)
    vetoes: list[Question] = []
    checks: list[dict[str, Any]] = []

    @model_validator(mode="after")
    def _names_differ(self) -> RubricContent:
        names = [question.name for question in [*self.criteria, *self.vetoes]]
        if len(set(names)) < len(names):
            raise ValueError(f"every criterion and veto needs a name of its own, got {names}")
        return self
