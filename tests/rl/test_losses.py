"""Each loss against a value and a gradient computed by hand (plain floats, the papers' formulas)."""

import math

import pytest
import torch

from rl.losses import Tokens, denominator, loss_terms
from rl.types import Datum, LossSpec

# Two sequences: three tokens with A = 1, one token with A = -0.5. Ratios: 1.3499, 0.6065, 1.0513 and 0.7408.
NOW = [-1.0, -2.0, -0.5, -1.5]
OLD = [-1.3, -1.5, -0.55, -1.2]
ADVANTAGE = [1.0, 1.0, 1.0, -0.5]
SEQUENCE = [0, 0, 0, 1]
RATIO = [math.exp(now - old) for now, old in zip(NOW, OLD, strict=True)]


def run(spec: LossSpec, divisor: float, **change: list[float] | None) -> tuple[float, list[float], int]:
    values: dict[str, list[float] | None] = {
        "old": OLD,
        "sampler": None,
        "reference": None,
        "weights": [1.0] * 4,
    } | change
    logprobs = torch.tensor(NOW, dtype=torch.float64, requires_grad=True)

    def tensor(name: str) -> torch.Tensor | None:
        found = values[name]
        return None if found is None else torch.tensor(found, dtype=torch.float64)

    weights = tensor("weights")
    assert weights is not None
    tokens = Tokens(
        logprobs=logprobs,
        weights=weights,
        advantages=torch.tensor(ADVANTAGE, dtype=torch.float64),
        old=tensor("old"),
        sampler=tensor("sampler"),
        sequence=torch.tensor(SEQUENCE),
        sequences=2,
        reference=tensor("reference"),
    )
    terms = loss_terms(spec, tokens, divisor)
    terms.loss.backward()
    assert logprobs.grad is not None
    return float(terms.loss.detach()), logprobs.grad.tolist(), terms.clipped


def clipped_surrogate(low: float, high: float, divisors: list[float]) -> tuple[float, list[float]]:
    """-min(ρA, clip(ρ)A), each token over its own divisor; a clipped token has no gradient."""
    loss, gradient = 0.0, []
    for ratio, advantage, divisor in zip(RATIO, ADVANTAGE, divisors, strict=True):
        bounded = min(max(ratio, 1 - low), 1 + high)
        loss -= min(ratio * advantage, bounded * advantage) / divisor
        is_clipped = bounded * advantage < ratio * advantage
        gradient.append(0.0 if is_clipped else -ratio * advantage / divisor)
    return loss, gradient


def test_cross_entropy_divides_by_weights() -> None:
    loss, gradient, _ = run(LossSpec("cross_entropy"), 3.5, weights=[1.0, 1.0, 0.5, 1.0])
    assert loss == pytest.approx((1.0 + 2.0 + 0.25 + 1.5) / 3.5)
    assert gradient == pytest.approx([-1 / 3.5, -1 / 3.5, -0.5 / 3.5, -1 / 3.5])


def test_cispo_caps_the_weight_and_keeps_every_gradient() -> None:
    loss, gradient, capped = run(LossSpec("cispo", clip_high=1.1), 4)
    weight = [min(ratio, 1.1) for ratio in RATIO]
    assert loss == pytest.approx(-sum(w * a * p for w, a, p in zip(weight, ADVANTAGE, NOW, strict=True)) / 4)
    assert gradient == pytest.approx([-w * a / 4 for w, a in zip(weight, ADVANTAGE, strict=True)])
    assert all(gradient)
    assert capped == 1


def test_importance_sampling_caps_nothing() -> None:
    _, gradient, _ = run(LossSpec("importance_sampling"), 4)
    assert gradient == pytest.approx([-r * a / 4 for r, a in zip(RATIO, ADVANTAGE, strict=True)])


@pytest.mark.parametrize(("name", "low", "high"), [("ppo", 0.2, 0.2), ("dapo", 0.2, 0.28)])
def test_ppo_and_dapo_clip_by_token(name: str, low: float, high: float) -> None:
    loss, gradient, clipped = run(LossSpec(name), 4)  # type: ignore[arg-type]
    want_loss, want = clipped_surrogate(low, high, [4.0] * 4)
    assert loss == pytest.approx(want_loss)
    assert gradient == pytest.approx(want)
    # ρ = 1.35 with A > 0 and ρ = 0.74 with A < 0 lie beyond the bound in the direction of the gain.
    assert clipped == 2
    assert gradient[0] == gradient[3] == 0


def test_grpo_is_the_mean_of_sequence_means() -> None:
    loss, gradient, _ = run(LossSpec("grpo"), 2)
    want_loss, want = clipped_surrogate(0.2, 0.2, [6.0, 6.0, 6.0, 2.0])
    assert loss == pytest.approx(want_loss)
    assert gradient == pytest.approx(want)


def test_dr_grpo_divides_by_a_constant_length() -> None:
    spec = LossSpec("dr_grpo", constant_length=10)
    data = [Datum([1, 2, 3, 4], [0, 1, 1, 1]), Datum([1, 2], [0, 1])]
    assert denominator(spec, data) == 20
    loss, gradient, _ = run(spec, denominator(spec, data))
    want_loss, want = clipped_surrogate(0.2, 0.2, [20.0] * 4)
    assert loss == pytest.approx(want_loss)
    assert gradient == pytest.approx(want)


def test_gspo_takes_the_ratio_of_the_sequence() -> None:
    # Wide clips, so that the first sequence's ratio exp(-0.05) = 0.951 passes; the second's 0.741 with A < 0 does not.
    loss, gradient, clipped = run(LossSpec("gspo", clip_low=0.1, clip_high=0.1), 2)
    first = math.exp((0.3 - 0.5 + 0.05) / 3)
    assert loss == pytest.approx(-(first * 1.0 + 0.9 * -0.5) / 2)
    assert gradient == pytest.approx([-first / 6] * 3 + [0.0])
    assert clipped == 1


def test_without_old_logprobs_the_first_touch_has_ratio_one() -> None:
    for name in ("cispo", "dapo", "ppo", "importance_sampling"):
        _, gradient, clipped = run(LossSpec(name), 4, old=None)  # type: ignore[arg-type]
        assert gradient == pytest.approx([-a / 4 for a in ADVANTAGE])
        assert clipped == 0


def test_sampler_mismatch_is_a_truncated_weight_without_gradient() -> None:
    sampler = [value - gap for value, gap in zip(OLD, [0.1, -0.2, 5.0, 0.0], strict=True)]
    _, plain, _ = run(LossSpec("cispo"), 4)
    _, weighted, _ = run(LossSpec("cispo"), 4, sampler=sampler)
    factors = [math.exp(0.1), math.exp(-0.2), 2.0, 1.0]
    assert weighted == pytest.approx([g * f for g, f in zip(plain, factors, strict=True)])


def test_sequence_mean_makes_sequences_weigh_the_same() -> None:
    spec = LossSpec("cispo", normalise="sequence_mean")
    _, gradient, _ = run(spec, 2, old=None)
    assert gradient == pytest.approx([-1 / 6] * 3 + [0.5 / 2])


def test_kl_to_the_reference_pulls_back() -> None:
    reference = [value + 0.2 for value in NOW]
    _, without, _ = run(LossSpec("cispo"), 4)
    _, with_kl, _ = run(LossSpec("cispo", beta=0.5), 4, reference=reference)
    # d/dp of (e^gap - 1 - gap), gap = reference - p, is 1 - e^gap: raising p towards it lowers the loss.
    pull = 0.5 * (1 - math.exp(0.2)) / 4
    assert [b - a for a, b in zip(without, with_kl, strict=True)] == pytest.approx([pull] * 4)


def test_denominators_are_each_papers() -> None:
    data = [Datum([1, 2, 3, 4], [0, 1, 1, 0.5]), Datum([1, 2], [0, 1]), Datum([1, 2], [0, 0])]
    assert denominator(LossSpec("cispo"), data) == 3.5
    assert denominator(LossSpec("grpo"), data) == denominator(LossSpec("gspo"), data) == 2
    assert denominator(LossSpec("cispo", normalise="sequence_mean"), data) == 2
    assert denominator(LossSpec("cispo", denominator=7.0), data) == 7
