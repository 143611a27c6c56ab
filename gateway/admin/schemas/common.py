"""Owns what every shape shares: money as text, the error's shape, what a creation answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, PlainSerializer, WithJsonSchema


def plain(amount: Decimal) -> str:
    """A decimal without exponent or trailing zeros: `0.00042`, never `4.2E-4`."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


Money = Annotated[
    Decimal,
    PlainSerializer(plain, return_type=str),
    WithJsonSchema({"type": "string", "format": "decimal", "examples": ["0.00042"]}),
]
"""USD. Text on the wire, so that no client turns it into a float unasked."""


class Shape(BaseModel):
    """Base of every answer: read straight from a row or a named tuple."""

    # A field that has a default is always there in an answer: the document says so.
    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class Input(BaseModel):
    """Base of every request body: a field we do not know is a mistake worth telling."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Created(Shape):
    """The id of what was made."""

    id: UUID


class Named(Shape):
    """A reference to another row, with the name that people know it by."""

    id: UUID
    name: str


class ErrorDetail(BaseModel):
    """What happened, which value, what to do."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """OpenAI's error shape, used by every route."""

    error: ErrorDetail


class Interval(Shape):
    """An estimate with its 95 % interval."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None


JsonObject = dict[str, Any]
