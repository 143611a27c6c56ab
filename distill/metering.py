"""Owns what judging costs: every judge call becomes a ledger entry at once, and a cap stops the next one.

Must not retry or change a request.
"""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ids import new_id
from gateway.models import LedgerEntry
from gateway.providers import ChatModel, ChatResult, UpstreamSpec, Usage
from gateway.runs import spend

BYTES_PER_TOKEN, ANSWER_TOKENS = 4, 200
"""What a judge call is expected to be, before one has been seen."""


class Meter:
    """What a run's judge has cost so far, and whether there is room for another call.

    Calls under way are reckoned at the dearest seen so far or, if that is more, at what their size lets expect: so many
    at once cannot pass the cap together, not even the first ones.
    """

    def __init__(self, spec: UpstreamSpec, run_id: UUID, *, cap: Decimal, call_cap: int) -> None:
        self._spec, self._run_id, self._cap, self._call_cap = spec, run_id, cap, call_cap
        self._under_way = 0
        self._dearest = Decimal(0)
        with session_scope() as session:
            self.spent, self.calls = spend.so_far(session, run_id)
        self.exhausted: str | None = None

    def begin(self, request: dict[str, Any]) -> None:
        """Reserves one call. Raises StepdownError 402 where it might go beyond a cap."""
        size = Usage(prompt=len(json.dumps(request)) // BYTES_PER_TOKEN, completion=ANSWER_TOKENS)
        each = max(self._dearest, size.cost(self._spec.prices))
        expected = self.spent + each * (self._under_way + 1)
        if self.calls >= self._call_cap:
            self.exhausted = f"The judge has been asked {self.calls} times: its cap, judge_call_cap."
        elif each and expected > self._cap:
            self.exhausted = f"The judge has cost {self.spent:.4f} USD of {self._cap}: its cap, judge_spend_cap_usd."
        if self.exhausted:
            raise StepdownError(402, "judge_cap_reached", self.exhausted, hint="Raise the cap and resume the run.")
        self._under_way += 1
        self.calls += 1

    def end(self) -> None:
        """The call is over, answered or not."""
        self._under_way -= 1

    def record(self, result: ChatResult) -> None:
        """Enters an answered call into the ledger."""
        amount = result.usage.cost(self._spec.prices)
        self._dearest = max(self._dearest, amount)
        entry = LedgerEntry(
            project_id=self._spec.project_id,
            source_id=new_id(),
            kind="judge",
            run_id=self._run_id,
            upstream_id=self._spec.id,
            amount=amount,
            price={name: str(value) for name, value in vars(self._spec.prices).items()},
            usage=dict(vars(result.usage)),
        )
        with session_scope() as session:
            self.spent = spend.add(session, self._run_id, entry)


class MeteredChat:
    """A judge's model behind a meter."""

    def __init__(self, model: ChatModel, meter: Meter) -> None:
        self._model, self._meter = model, meter

    async def complete(self, request: dict[str, Any]) -> ChatResult:
        """See `ChatModel.complete`. Raises StepdownError 402 at the cap."""
        self._meter.begin(request)
        try:
            result = await self._model.complete(request)
        finally:
            self._meter.end()
        # Paid for is entered, whoever stops waiting for it now.
        await asyncio.shield(asyncio.to_thread(self._meter.record, result))
        return result
