"""Owns the losses: what each does with log-probs, and what it divides by. Knows no model and no packing.

Every loss is a sum of terms over sequences, divided by a number known before the first micro-batch, so that splitting
a step into micro-batches changes nothing. ρ = π_θ/π_old per token, A the sequence's advantage, N all trained tokens of
the step, S its sequences, |o| a sequence's trained tokens. To be minimised:

- `cispo`   Σ −sg[min(ρ, 5)]·A·log π_θ ÷ N. MiniMax-M1 (arXiv:2506.13585), eq. 4 and 5, without a lower bound as there;
  the bound 5 is ScaleRL's (arXiv:2510.13786).
- `dapo`    Σ −min(ρA, clip(ρ, 1−0.2, 1+0.28)A) ÷ N. DAPO (arXiv:2503.14476), eq. 8. The paper writes the sum over one
  question's answers; over the step it is read as all tokens of all questions, as in its code.
- `ppo`     the same with clip(ρ, 0.8, 1.2). PPO (arXiv:1707.06347), eq. 7, the mean over tokens.
- `grpo`    Σ over sequences of (Σ −min(ρA, clip(ρ, 0.8, 1.2)A) ÷ |o|) ÷ S. DeepSeekMath (arXiv:2402.03300), eq. 3.
- `dr_grpo` Σ −min(ρA, clip(ρ, 0.8, 1.2)A) ÷ (S · a constant length). Dr. GRPO (arXiv:2503.20783), section 3.
- `gspo`    Σ over sequences of −min(sA, clip(s, 1−3e-4, 1+4e-4)A) ÷ S, s = exp(Σ log ρ ÷ |o|). GSPO (arXiv:2507.18071),
  eq. 5 and 7, bounds of section 5.1.
- `importance_sampling` Σ −sg[ρ]·A·log π_θ ÷ N: REINFORCE, corrected for the policy that sampled.
- `cross_entropy` Σ −w·log π_θ ÷ Σ w.

With `beta` each token's term gains β·(e^d − 1 − d), d = log π_ref − log π_θ: DeepSeekMath's eq. 4, the k3 estimator of
Schulman (2020). Each policy term is multiplied by the truncated weight min(π_old/π_sampler, 2), without gradient, for
what sampler and trainer compute differently (Yao et al. 2025, "Your efficient RL framework secretly brings you
off-policy RL training"). Where `old_logprobs` is missing the trainer has not moved since sampling, and π_old is π_θ
without its gradient (ρ = 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rl.types import Datum, LossSpec

# (clip_low, clip_high) where the spec leaves them None; cispo's is a bound on ρ itself, not on its distance from 1.
_CLIPS = {
    "cispo": (0.0, 5.0),
    "dapo": (0.2, 0.28),
    "ppo": (0.2, 0.2),
    "grpo": (0.2, 0.2),
    "dr_grpo": (0.2, 0.2),
    "gspo": (3e-4, 4e-4),
    "importance_sampling": (0.0, 0.0),
    "cross_entropy": (0.0, 0.0),
}
_BY_SEQUENCE = {"grpo", "gspo"}


@dataclass(frozen=True, slots=True)
class Tokens:
    """The trained tokens of one micro-batch, flat. All [F] but `sequence` values, which run over 0…sequences-1."""

    logprobs: Tensor
    weights: Tensor
    advantages: Tensor
    old: Tensor | None
    sampler: Tensor | None
    sequence: Tensor
    sequences: int
    reference: Tensor | None = None


@dataclass(frozen=True, slots=True)
class LossTerms:
    """A micro-batch's share of the loss (already divided), and sums for the step's statistics."""

    loss: Tensor
    mismatch_sum: float
    clipped: int


def denominator(spec: LossSpec, data: Sequence[Datum]) -> float:
    """What the whole step's sum is divided by: trained tokens, sequences, sequences × a constant, or weights."""
    if spec.denominator is not None:
        return spec.denominator
    trained = [datum for datum in data if any(datum.weights)]
    if spec.normalise == "sequence_mean" or spec.name in _BY_SEQUENCE:
        return float(len(trained))
    if spec.name == "dr_grpo":
        return float(len(trained) * spec.constant_length)
    return float(sum(sum(datum.weights) for datum in trained))


def loss_terms(spec: LossSpec, tokens: Tokens, divisor: float) -> LossTerms:
    """The share of the step's loss that these tokens make, with gradient to `tokens.logprobs`."""
    per_token, clipped = _per_token(spec, tokens)
    mismatch = 0.0
    if spec.name != "cross_entropy" and tokens.sampler is not None:
        old = tokens.logprobs.detach() if tokens.old is None else tokens.old
        log_ratio = old - tokens.sampler
        per_token = per_token * log_ratio.exp().clamp(max=spec.mismatch_cap)
        # KL(sampler ‖ trainer) by the k3 estimator (Schulman 2020): ≥ 0 and of low variance.
        mismatch = float((log_ratio.exp() - 1 - log_ratio).sum())
    if spec.beta and tokens.reference is not None:
        gap = tokens.reference - tokens.logprobs
        per_token = per_token + spec.beta * (gap.exp() - 1 - gap)
    per_token = per_token * tokens.weights
    if spec.normalise == "sequence_mean" or spec.name in _BY_SEQUENCE:
        per_token = per_token / _per_sequence(tokens.weights, tokens)[tokens.sequence]
    return LossTerms(per_token.sum() / divisor, mismatch, clipped)


def _per_sequence(values: Tensor, tokens: Tokens) -> Tensor:
    zeros = torch.zeros(tokens.sequences, dtype=values.dtype, device=values.device)
    return zeros.index_add(0, tokens.sequence, values)


def _per_token(spec: LossSpec, tokens: Tokens) -> tuple[Tensor, int]:
    """The loss of each token before normalising, and how many tokens the clip took the gradient from (or capped)."""
    logprobs, advantages = tokens.logprobs, tokens.advantages
    if spec.name == "cross_entropy":
        return -logprobs, 0
    old = logprobs.detach() if tokens.old is None else tokens.old
    log_ratio = logprobs - old
    low, high = _CLIPS[spec.name]
    low = low if spec.clip_low is None else spec.clip_low
    high = high if spec.clip_high is None else spec.clip_high
    if spec.name == "importance_sampling":
        return -log_ratio.detach().exp() * advantages * logprobs, 0
    if spec.name == "cispo":
        ratio = log_ratio.detach().exp()
        return -ratio.clamp(max=high) * advantages * logprobs, int((ratio > high).sum())
    if spec.name == "gspo":
        # Sequence ratio exp(mean log ρ); every token of the sequence carries it, so its mean over tokens is itself.
        lengths = _per_sequence(tokens.weights, tokens)
        mean = _per_sequence(log_ratio * tokens.weights, tokens) / lengths
        log_ratio = mean[tokens.sequence]
    ratio = log_ratio.exp()
    bounded = ratio.clamp(1 - low, 1 + high)
    objective = torch.minimum(ratio * advantages, bounded * advantages)
    return -objective, int((objective < ratio * advantages).sum())
