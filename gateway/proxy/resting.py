"""Owns leaving alone for a while whoever fails again and again: an engine that hangs, an upstream that is down.

After some failures in a row it rests: calls pass it by. After the rest one call tries it; until that call knows, the
others go on passing it by. What counts as a failure, and where calls go instead, is not this module's business.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic

REST_S = (5.0, 15.0, 60.0)


@dataclass
class _Trouble:
    failures: int = 0
    rests: int = 0
    until: float = 0.0
    tried: bool = False


class Resting:
    """Who rests, by any key; in this process alone.

    `patience`: failures in a row before a rest. `trial_s`: how long the others wait for the call that tries.
    """

    def __init__(self, patience: int, trial_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._patience = patience
        self._trial_s = trial_s
        self._clock = clock
        self._troubles: dict[Hashable, _Trouble] = {}

    def rests(self, who: Hashable) -> bool:
        """Whether a call should pass it by. False after a rest is for the one call that tries."""
        trouble = self._troubles.get(who)
        if trouble is None or not trouble.rests:
            return False
        if self._clock() < trouble.until:
            return True
        trouble.tried, trouble.until = True, self._clock() + self._trial_s
        return False

    def in_trouble(self, who: Hashable) -> bool:
        """Whether it rests, or has not answered since it did."""
        trouble = self._troubles.get(who)
        return trouble is not None and trouble.rests > 0

    def answered(self, who: Hashable) -> bool:
        """It did what was asked of it. Returns whether that ends a trouble."""
        trouble = self._troubles.pop(who, None)
        return trouble is not None and trouble.rests > 0

    def failed(self, who: Hashable) -> float | None:
        """It did not. Returns the seconds of the rest that begins with it, if one does.

        Calls that were under way when a rest began tell nothing new.
        """
        trouble = self._troubles.setdefault(who, _Trouble())
        trouble.failures += 1
        if trouble.failures < self._patience or (self._clock() < trouble.until and not trouble.tried):
            return None
        rest = REST_S[min(trouble.rests, len(REST_S) - 1)]
        trouble.rests, trouble.tried, trouble.until = trouble.rests + 1, False, self._clock() + rest
        return rest
