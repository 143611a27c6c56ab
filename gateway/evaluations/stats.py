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
_ORDERS = 16  # orders of the values that are averaged over
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
    """Confidence interval of the mean of values in [0, 1], by betting. Nothing seen: all of [0, 1].

    Hedged capital with predictable plug-in bets (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random
    variables by betting", theorem 3 and equation 26). For each possible mean m one gambler bets on the values being
    above it, one on their being below; m stays in the interval while the two, with half of the stake each, have not
    multiplied it to 1/α. Their gain depends on the order of the values, which must not decide anything: the gain is
    averaged over orders drawn from the values alone, and an average of such gains bounds the error just as well. It
    holds for values looked at once, as the test split is.
    """
    import numpy as np

    x = np.sort(np.asarray(values, dtype=np.float64))
    if x.size == 0:
        return Interval(math.nan, 0.0, 1.0, 0)
    if x[0] < 0 or x[-1] > 1:
        raise ValueError(f"values must lie in [0, 1], got {x[0]} to {x[-1]}")
    dice = np.random.default_rng(0)
    places = [dice.permutation(x.size) for _ in range(_ORDERS // 2)]
    # Each order with its mirror image, so that swapping wins and losses mirrors the interval.
    orders = np.stack([way[place] for place in places for way in (x, x[::-1])])
    means = np.arange(_GRID + 1) / _GRID
    kept = means[np.logaddexp.reduce(_gains(orders, means, alpha)) - math.log(_ORDERS) < math.log(1 / alpha)]
    mean = float(x.mean())
    if kept.size == 0:  # an event of probability α: every mean was ruled out
        return Interval(mean, mean, mean, x.size)
    return Interval(mean, max(0.0, float(kept[0]) - 1 / _GRID), min(1.0, float(kept[-1]) + 1 / _GRID), x.size)


def _gains(orders: Floats, means: Floats, alpha: float) -> Floats:
    """[orders, means]: the log of what a stake of 1 has become after the values in each of `orders` [orders, n]."""
    import numpy as np

    with np.errstate(divide="ignore"):
        most_up, most_down = _CAP / means, _CAP / (1 - means)
    up = np.zeros((len(orders), means.size))
    down = np.zeros_like(up)
    for value, bet in zip(orders.T[:, :, None], _bets(orders, alpha).T[:, :, None], strict=True):
        up += np.log1p(np.minimum(bet, most_up) * (value - means))
        down += np.log1p(-np.minimum(bet, most_down) * (value - means))
    return np.asarray(np.logaddexp(up, down) - math.log(2))


def _bets(x: Floats, alpha: float) -> Floats:
    """λ_t = √(2 ln(2/α) / (σ̂²_{t−1} t ln(1+t))) along the last axis, each from the values before t alone (eq. 26)."""
    import numpy as np

    t = np.arange(1, x.shape[-1] + 1)
    means = (0.5 + np.cumsum(x, axis=-1)) / (t + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2, axis=-1)) / (t + 1)
    before = np.insert(variances[..., :-1], 0, 0.25, axis=-1)
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * t * np.log1p(t))))
