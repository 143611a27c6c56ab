"""Money: exact, priced at its time, charged once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.billing import repository
from gateway.billing.service import PriceBook, amount, entry
from gateway.core.db import session_scope
from gateway.core.ids import new_id
from gateway.models import Price
from gateway.providers.spec import Usage
from gateway.providers.usage import usage_of
from tests.gateway.world import charges, seed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SELLER = new_id()


def price(per_mtok: str = "1", hours: int = 0, model: str | None = None, **seller: Any) -> Price:
    return Price(
        id=new_id(), project_id=new_id(), input_per_mtok=Decimal(per_mtok), cached_input_per_mtok=Decimal("0.1"),
        output_per_mtok=Decimal("3"), source="test", model=model, effective_from=NOON + timedelta(hours=hours),
        upstream_id=seller.get("upstream_id", SELLER), student_id=seller.get("student_id"),
    )  # fmt: skip


def test_the_price_in_force() -> None:
    early, late, own = price(hours=-2), price(hours=2), price(hours=-1, model="gpt-4o")
    book = PriceBook([late, own, early])
    assert book.in_force(SELLER, ["gpt-5"], NOON) is early
    assert book.in_force(SELLER, ["gpt-4o-2024", None, "gpt-4o"], NOON) is own
    assert book.in_force(SELLER, [], NOON + timedelta(hours=3)) is late
    assert book.in_force(SELLER, [], NOON - timedelta(hours=3)) is None
    assert book.in_force(new_id(), [], NOON) is None
    assert book.in_force(None, [], NOON) is None


def test_a_students_price_is_its_own() -> None:
    student = new_id()
    mine = price(upstream_id=None, student_id=student)
    assert PriceBook([mine]).in_force(student, ["any"], NOON) is mine


def test_amounts_are_exact() -> None:
    assert amount(Usage(prompt=3, completion=1), price("0.07")) == Decimal("0.00000321")
    assert amount(Usage(prompt=10, cached=4, completion=0), price("1")) == Decimal("0.0000064")


def test_a_source_is_charged_once(database: str) -> None:
    rows, source = seed("http://u/v1"), new_id()
    for tokens in (5, 500):
        with session_scope() as session:
            charge = entry(
                project_id=rows.project_id, source_id=source, kind="call", usage=Usage(prompt=tokens), price=price("1")
            )
            repository.add_entries(session, [charge])
    (kept,) = charges()
    assert kept.amount == Decimal("0.000005")
    assert kept.price["input_per_mtok"] == "1"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"prompt_tokens": None}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": "x"}, Usage(prompt=9)),
        # DeepSeek's name for cached input
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}, Usage(9, 1, 4, 0)),
        # OpenAI: reasoning is part of the completion
        ({"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
          "completion_tokens_details": {"reasoning_tokens": 3}}, Usage(9, 5, 0, 3)),
        # xAI: reasoning is beside it, as the total shows
        ({"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 17,
          "completion_tokens_details": {"reasoning_tokens": 3}}, Usage(9, 8, 0, 3)),
    ],
)  # fmt: skip
def test_usage_in_every_dialect(usage: Any, expected: Usage) -> None:
    assert usage_of({"usage": usage}) == expected


def test_usage_where_groq_puts_it() -> None:
    assert usage_of({"x_groq": {"usage": {"prompt_tokens": 2}}}) == Usage(prompt=2)
