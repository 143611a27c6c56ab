"""Owns the losses: what each does with log-probs, and what it divides by. Knows no model and no packing.

Every loss is a sum of terms over sequences, divided by a number known before the first micro-batch, so that splitting
a step into micro-batches changes nothing. ρ = π_θ/π_old per token, A the sequence's advantage, w the truncated
mismatch weight min(π_old/π_sampler, cap) without gradient (Yao et al. 2025). Where `old_logprobs` is missing the
trainer has not moved since sampling, and π_old is π_θ without its gradient (ρ = 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rl.types import Datum, LossSpec

# (clip_low, clip_high) of each paper, used where the spec leaves them None.
_CLIPS = {
    "cispo": (0.0, 5.0),  # MiniMax-M1, eq. 4: an upper bound on ρ, none below
    "dapo": (0.2, 0.28),  # Yu et al. 2025, eq. 8
    "ppo": (0.2, 0.2),  # Schulman et al. 2017, eq. 7
    "grpo": (0.2, 0.2),  # Shao et al. 2024, eq. 3
    "dr_grpo": (0.2, 0.2),  # Liu et al. 2025
    "gspo": (3e-4, 4e-4),  # Zheng et al. 2025, eq. 5 and section 5.1
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
