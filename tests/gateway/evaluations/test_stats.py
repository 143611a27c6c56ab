"""Intervals: values worked out by hand, agreement with other formulas, coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.evaluations.stats import betting, wilson


def test_wilson_gives_the_textbook_interval() -> None:
    # z = 1.959964; (0.8 + z²/200 ± z·√(0.8·0.2/100 + z²/40000)) / (1 + z²/100)
    found = wilson(80, 100)
    assert found.value == 0.8
    assert found.low == pytest.approx(0.711169, abs=1e-5)
    assert found.high == pytest.approx(0.866633, abs=1e-5)


def test_wilson_stays_inside_zero_and_one_and_knows_nothing_from_nothing() -> None:
    assert wilson(0, 20).low == 0
    assert wilson(20, 20).high == 1
    assert wilson(20, 20).low == pytest.approx(20 / (20 + 1.959964**2), abs=1e-6)
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)
    with pytest.raises(ValueError, match="5 successes of 4"):
        wilson(5, 4)


def test_two_observations_of_the_betting_interval_by_hand() -> None:
    """x = (1, 1), α = 0.05. With y = 1 − m the gambler above has (1 + λ₁y)(1 + λ₂y), the one below, whose bets are
    capped at ½/y, has (1 − ½)² = ¼; m is ruled out where half of the sum reaches 1/α, the first one 39.75.

    λ₁ = √(2 ln 40 / (¼ · 1 · ln 2)) = 6.525. Then μ̂₁ = 1.5/2 and σ̂₁² = (¼ + (1 − ¾)²)/2 = 0.15625, so
    λ₂ = √(2 ln 40 / (0.15625 · 2 · ln 3)) = 4.636. 1 + 11.161 y + 30.25 y² = 39.75 has y = 0.9623, and neither bet
    is capped there, since ½/m = 13.3. Both orders of the two values are the same one.
    """
    found = betting([1.0, 1.0])
    assert found.low == pytest.approx(1 - 0.9623, abs=6e-4)
    assert (found.value, found.high, found.n) == (1.0, 1.0, 2)


def test_the_interval_holds_the_mean_and_shrinks_with_data() -> None:
    rng = np.random.default_rng(5)
    values = rng.choice([0.0, 0.5, 1.0], p=[0.1, 0.75, 0.15], size=2000)
    widths = []
    for n in (50, 200, 800, 2000):
        found = betting(values[:n])
        assert found.low <= 0.525 <= found.high
        assert found.low < found.value < found.high
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.05


def test_the_order_of_the_values_decides_nothing() -> None:
    rng = np.random.default_rng(8)
    values = np.repeat([0.0, 0.5, 1.0], [49, 239, 51])
    found = {(interval.low, interval.high) for interval in (betting(rng.permutation(values)) for _ in range(5))}
    assert len(found) == 1
    [(low, high)] = found
    spread = 1.96 * float(values.std()) / len(values) ** 0.5  # the large-sample interval: ours is a little wider
    assert 0 < float(values.mean()) - spread - low < 0.02
    assert 0 < high - float(values.mean()) - spread < 0.02


def test_ties_alone_narrow_it_far_faster_than_wins_and_losses() -> None:
    ties, mixed = betting([0.5] * 315), betting([0.0, 1.0] * 157)
    assert ties.high - ties.low < 0.06
    assert mixed.high - mixed.low > 3 * (ties.high - ties.low)
    assert ties.low > 0.45


def test_mirrored_values_give_the_mirrored_interval() -> None:
    values = np.random.default_rng(3).choice([0.0, 0.5, 1.0], p=[0.3, 0.5, 0.2], size=150)
    found, mirrored = betting(values), betting(1 - values)
    assert mirrored.low == pytest.approx(1 - found.high, abs=2e-3)
    assert mirrored.high == pytest.approx(1 - found.low, abs=2e-3)


def test_nothing_seen_says_nothing_and_values_outside_are_refused() -> None:
    assert (betting([]).low, betting([]).high, betting([]).n) == (0, 1, 0)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        betting([0.5, 1.2])


@pytest.mark.parametrize("weights", [(0.1, 0.8, 0.1), (0.45, 0.1, 0.45), (0.02, 0.08, 0.9)])
def test_coverage(weights: tuple[float, float, float]) -> None:
    """The interval must hold the mean in at least 95 % of 400 samples."""
    rng = np.random.default_rng(11)
    mean = 0.5 * weights[1] + weights[2]
    missed = 0
    for _ in range(400):
        found = betting(rng.choice([0.0, 0.5, 1.0], p=weights, size=120))
        missed += not found.low <= mean <= found.high
    # 5 % allowed; three binomial standard errors above it would show a wrong formula.
    assert missed <= 400 * 0.05
