"""Owns the intervals that evidence is stated with. Pure: numbers in, numbers out.

numpy is imported where it is used: the gateway process imports this module and answers calls without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_GRID = 2000  # candidate means: the interval's ends are exact to 1/2000
_CAP = 0.5  # c of the paper's truncation: no bet may lose more than half the capital


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its interval, all in [0, 1], from `n` observations."""

    value: float
    low: float
    high: float
    n: int


def wilson(successes: int, n: int, alpha: float = 0.05) -> Interval:
    """Score interval of a proportion (Wilson 1927). Nothing observed: all of [0, 1]."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return Interval(math.nan, 0.0, 1.0, 0)
    z, share = NormalDist().inv_cdf(1 - alpha / 2), successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half), n)


def betting(values: Sequence[float], alpha: float = 0.05) -> Interval:
    """Confidence sequence of a mean of values in [0, 1], at its last time, by betting. Nothing seen: all of [0, 1].

    Hedged capital with predictable plug-in bets (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random
    variables by betting", theorem 3 and equation 26). For each possible mean m two gamblers bet on the values being
    above or below it; m stays in the interval while neither has multiplied a half of the capital to 1/α. The interval
    holds at all times at once with probability 1 − α, so looking early or adding values later costs nothing.
    """
    import numpy as np

    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return Interval(math.nan, 0.0, 1.0, 0)
    if x.min() < 0 or x.max() > 1:
        raise ValueError(f"values must lie in [0, 1], got {x.min()} to {x.max()}")
    means = (np.arange(_GRID + 1)) / _GRID
    bets = _bets(x, alpha)
    with np.errstate(divide="ignore"):
        up, down = _CAP / means, _CAP / (1 - means)
    log_up, log_down = np.zeros_like(means), np.zeros_like(means)
    alive = np.ones_like(means, dtype=bool)
    limit = math.log(2 / alpha)
    for value, bet in zip(x, bets, strict=True):
        log_up += np.log1p(np.minimum(bet, up) * (value - means))
        log_down += np.log1p(-np.minimum(bet, down) * (value - means))
        alive &= np.maximum(log_up, log_down) < limit
    kept = means[alive]
    mean = float(x.mean())
    if kept.size == 0:  # a probability-α event: every mean was ruled out at some time
        return Interval(mean, mean, mean, x.size)
    return Interval(mean, max(0.0, float(kept[0]) - 1 / _GRID), min(1.0, float(kept[-1]) + 1 / _GRID), x.size)


def _bets(x: Floats, alpha: float) -> Floats:
    """λ_t = √(2 ln(2/α) / (σ̂²_{t−1} t ln(1+t))), each from the values before t alone (equation 26)."""
    import numpy as np

    t = np.arange(1, x.size + 1)
    means = (0.5 + np.cumsum(x)) / (t + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * t * np.log1p(t))))
