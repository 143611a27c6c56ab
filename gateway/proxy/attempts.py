"""Owns asking a route's upstreams in turn: who is asked, who is passed over and why, whose answer the client gets.

The client gets one answer, and nothing of those that were given up. Once it has its first byte nobody else is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.core import metrics
from gateway.core.errors import StepdownError
from gateway.proxy.answer import Send, relay
from gateway.proxy.call import Call
from gateway.proxy.client import FAILURES
from gateway.proxy.http1 import Answer
from gateway.proxy.places import NoneFree
from gateway.proxy.resting import Resting
from gateway.proxy.upstream import Upstreams
from gateway.routing.snapshot import Asked

log = logging.getLogger(__name__)
_PATIENCE = 5
_TRIAL_S = 15.0
_TOO_MANY = 429


@dataclass(frozen=True)
class _Given:
    """What an upstream gave that is not passed on while another may answer: an answer still unread, or a failure."""

    reason: str
    asked: Asked
    error: StepdownError | None = None
    response: Answer | None = None
    strip_usage: bool = False
    never_asked: bool = False


class Attempts:
    """Lets the upstreams of a call's route answer it.

    What the first one asked gives passes on untouched, unless it is a failure (429, 5xx, nothing in time, nothing at
    all) and another one answers. Others' errors never reach the client: it gets the first one's.
    """

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self.resting = Resting(_PATIENCE, _TRIAL_S)

    async def answer(self, call: Call, query: str, send: Send) -> None:
        """Asks until one answers. Raises StepdownError when none did, and what reading raises once sending began."""
        assert call.decision is not None
        chosen = call.decision.route.upstreams
        if len(chosen) > 1 and not call.request.portable:
            chosen = chosen[:1]
        before, reasons = call.fallback_reason, list[str]()
        first: _Given | None = None
        try:
            for nth, asked in enumerate(chosen if len(chosen) == 1 else self._in_turn(chosen), 1):
                if asked is not chosen[0] and not reasons:
                    reasons.append("upstream_resting")
                if reasons:
                    call.fallback_reason = ", ".join([before, *reasons] if before else reasons)
                heard = first is None or first.never_asked
                given = await self._attempt(call, asked, query, send, heard, nth == len(chosen))
                if given is None:
                    _count(reasons)
                    return
                reasons.append(given.reason)
                if first is None or (first.never_asked and not given.never_asked):
                    first = given
                if call.watch.gone:
                    break
            assert first is not None, "a route has an upstream"
            if len(reasons) > 1:
                call.tried = ", ".join(reasons)
            call.fallback_reason = before
            await self._pass_on(call, first, send)
        finally:
            if first is not None and first.response is not None:
                first.response.close()

    def _in_turn(self, chosen: Sequence[Asked]) -> Iterator[Asked]:
        """In order, but those that rest last: somebody has to be asked."""
        resting = []
        for asked in chosen:
            if self.resting.rests(asked.upstream.spec.id):
                resting.append(asked)
            else:
                yield asked
        yield from resting

    async def _attempt(
        self, call: Call, asked: Asked, query: str, send: Send, heard: bool, last: bool
    ) -> _Given | None:
        """None when the upstream has answered the client, else what it gave instead.

        `heard`: its error would be the client's. `last`: nobody comes after it.
        """
        call.asks(asked)
        response, kept = None, False
        try:
            response, strip_usage = await self._upstreams.ask(call, asked, query, retry=last)
            status = response.status
            if status >= 500:
                self._failed(asked)
            else:
                self._answered(asked)
            if (status >= 500 or status == _TOO_MANY) and not last if heard else status >= 400:
                kept = heard
                call.not_answered()
                return _Given(f"upstream_http_{status}", asked, None, response, strip_usage)
            await relay(call, response, send, strip_usage, hold=not last)
            return None
        except StepdownError as error:
            return _Given(error.code, asked, error, never_asked=True)
        except FAILURES as error:
            if call.begun:
                raise
            return self._broke(call, asked, error)
        except asyncio.CancelledError:
            if call.begun or call.watch.gone or call.watch.expired != "silence":
                raise
            late = call.too_late()
            call.watch.go_on()
            return self._broke(call, asked, late)
        finally:
            if response is not None and not kept:
                response.close()

    def _broke(self, call: Call, asked: Asked, error: Exception) -> _Given:
        told = self._upstreams.failure(call, error)
        call.not_answered()
        if not isinstance(error, NoneFree):  # that is our own limit
            self._failed(asked)
        return _Given(told.code, asked, told)

    async def _pass_on(self, call: Call, first: _Given, send: Send) -> None:
        if first.response is None:
            assert first.error is not None
            raise first.error
        call.asks(first.asked)
        call.watch.await_more()
        await relay(call, first.response, send, first.strip_usage)

    def _failed(self, asked: Asked) -> None:
        upstream = asked.upstream
        rest = self.resting.failed(upstream.spec.id)
        if rest is not None:
            metrics.UPSTREAM_RESTING.labels(upstream.name, str(upstream.spec.id)).set(1)
            log.warning("upstream %s fails again and again: it rests %g s where others can answer", upstream.name, rest)

    def _answered(self, asked: Asked) -> None:
        upstream = asked.upstream
        if self.resting.answered(upstream.spec.id):
            metrics.UPSTREAM_RESTING.labels(upstream.name, str(upstream.spec.id)).set(0)
            log.info("upstream %s answers again", upstream.name)


def _count(reasons: list[str]) -> None:
    for reason in reasons:
        metrics.UPSTREAM_FALLBACKS.labels(reason).inc()
