"""Owns leaving alone a student whose engine hangs, so that not every call waits out its time limit.

After two calls in a row without an answer in time the next ones pass it by; now and then one of them tries again.
Only time counts here: what an answer is worth is not this module's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

_PATIENCE = 2
_REST_S = (5.0, 15.0, 60.0)


@dataclass
class _Trouble:
    unanswered: int = 0
    until: float = 0.0


class Resting:
    """Engines that rest, by their URL: one that was started again listens elsewhere and begins afresh."""

    def __init__(self, timeout_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._timeout_s = timeout_s
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    def rests(self, engine: str) -> bool:
        """Whether a call should pass the engine by. After a rest one call tries it; others wait for what it finds."""
        trouble = self._troubles.get(engine)
        if trouble is None or trouble.unanswered < _PATIENCE:
            return False
        if self._clock() < trouble.until:
            return True
        trouble.until = self._clock() + self._timeout_s
        return False

    def answered(self, engine: str) -> None:
        """It said something in time, be it an error."""
        self._troubles.pop(engine, None)

    def unanswered(self, engine: str) -> None:
        """A call's time passed, or its client lost patience, before anything came."""
        trouble = self._troubles.setdefault(engine, _Trouble())
        trouble.unanswered += 1
        rests = trouble.unanswered - _PATIENCE
        if rests >= 0:
            trouble.until = self._clock() + _REST_S[min(rests, len(_REST_S) - 1)]
