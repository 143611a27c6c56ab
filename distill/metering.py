"""Owns what judging costs: every judge call becomes a ledger entry at once, and a cap stops the next one.

Must not retry or change a request.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any
from uuid import UUID

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ids import new_id
from gateway.models import LedgerEntry
from gateway.providers import ChatModel, ChatResult, UpstreamSpec
from gateway.runs import spend


class MeteredChat:
    """A judge's model with a meter: refuses with StepdownError 402 what would go beyond the caps.

    Calls under way are reckoned at the dearest seen so far, so that many at once cannot pass the cap together.
    """

    def __init__(self, model: ChatModel, spec: UpstreamSpec, run_id: UUID, *, cap: Decimal, call_cap: int) -> None:
        self._model, self._spec, self._run_id = model, spec, run_id
        self._cap, self._call_cap = cap, call_cap
        self._under_way = 0
        self._dearest = Decimal(0)
        with session_scope() as session:
            self.spent, self.calls = spend.so_far(session, run_id)
        self.exhausted: str | None = None

    async def complete(self, request: dict[str, Any]) -> ChatResult:
        """See `ChatModel.complete`."""
        self._require_room()
        self._under_way += 1
        self.calls += 1
        try:
            result = await self._model.complete(request)
        finally:
            self._under_way -= 1
        amount = result.usage.cost(self._spec.prices)
        self._dearest = max(self._dearest, amount)
        self.spent = await asyncio.to_thread(self._record, result, amount)
        return result

    def _require_room(self) -> None:
        expected = self.spent + self._dearest * (self._under_way + 1)
        if self.calls >= self._call_cap:
            self.exhausted = f"The judge has been asked {self.calls} times, its cap (judge_call_cap)."
        elif (self._dearest and expected > self._cap) or self.spent > self._cap:
            self.exhausted = f"The judge has cost {self.spent:.4f} USD of {self._cap} (judge_spend_cap_usd)."
        else:
            return
        raise StepdownError(402, "judge_cap_reached", self.exhausted, hint="Raise the cap and resume the run.")

    def _record(self, result: ChatResult, amount: Decimal) -> Decimal:
        prices, usage = self._spec.prices, result.usage
        entry = LedgerEntry(
            project_id=self._spec.project_id,
            source_id=new_id(),
            kind="judge",
            run_id=self._run_id,
            upstream_id=self._spec.id,
            amount=amount,
            price={name: str(value) for name, value in vars(prices).items()},
            usage=dict(vars(usage)),
        )
        with session_scope() as session:
            return spend.add(session, self._run_id, entry)
