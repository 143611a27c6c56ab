"""Owns what a call costs: the price in force when it was made, frozen into its charge. Must not commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from gateway.core.clock import now
from gateway.core.ids import new_id
from gateway.models import Price
from gateway.providers.spec import Prices, Usage


class PriceBook:
    """Prices of some upstreams and students, to be asked for the one in force."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._by_seller: dict[UUID, list[Price]] = {}
        for price in prices:
            seller = price.upstream_id or price.student_id
            if seller is not None:
                self._by_seller.setdefault(seller, []).append(price)

    def in_force(self, seller_id: UUID | None, models: Sequence[str | None], at: datetime) -> Price | None:
        """The latest price that had begun: one for the first of `models` that has its own, else for any model."""
        begun = [p for p in self._by_seller.get(seller_id, []) if p.effective_from <= at] if seller_id else []
        for model in [*(m for m in models if m is not None), None]:
            fitting = [p for p in begun if p.model == model]
            if fitting:
                return max(fitting, key=lambda p: (p.effective_from, p.id))
        return None


def amount(usage: Usage, price: Price) -> Decimal:
    """USD for these tokens, exact."""
    return usage.cost(Prices(price.input_per_mtok, price.cached_input_per_mtok, price.output_per_mtok))


def entry(
    *,
    project_id: UUID,
    source_id: UUID,
    kind: str,
    usage: Usage,
    price: Price,
    call_id: UUID | None = None,
    run_id: UUID | None = None,
) -> dict[str, Any]:
    """A charge with its price frozen beside it, for `repository.add_entries`. `source_id` makes it unique."""
    return {
        "id": new_id(),
        "project_id": project_id,
        "source_id": source_id,
        "kind": kind,
        "call_id": call_id,
        "run_id": run_id,
        "upstream_id": price.upstream_id,
        "student_id": price.student_id,
        "amount": amount(usage, price),
        "price": {
            "id": str(price.id),
            "model": price.model,
            "input_per_mtok": str(price.input_per_mtok),
            "cached_input_per_mtok": str(price.cached_input_per_mtok),
            "output_per_mtok": str(price.output_per_mtok),
            "source": price.source,
        },
        "usage": {
            "prompt": usage.prompt,
            "completion": usage.completion,
            "cached": usage.cached,
            "reasoning": usage.reasoning,
        },
        "created_at": now(),
    }
