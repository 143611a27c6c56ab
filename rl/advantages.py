"""Owns turning a group's rewards into advantages. Knows no tokens.

The anchor is never part of what comes in here: it enters neither mean, σ nor loss.
"""

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Literal

Scale = Literal["mean", "group_std", "batch_std", "rloo"]
_EPSILON = 1e-6


def group_advantages(rewards: Sequence[float], scale: Scale = "mean") -> list[float]:
    """r − mean(r) ("mean", and "batch_std" before `scale_batch`): Dr. GRPO (arXiv:2503.20783), section 3.
    That ÷ σ of the group ("group_std"): GRPO, DeepSeekMath (arXiv:2402.03300), section 4.1.2.
    r_i − mean of the others ("rloo"): Ahmadian et al. 2024 (arXiv:2402.14740), section 2; it is "mean" · G/(G−1)."""
    centre = fmean(rewards)
    centred = [reward - centre for reward in rewards]
    if scale == "group_std":
        spread = pstdev(rewards)
        return [value / (spread + _EPSILON) for value in centred]
    if scale == "rloo":
        count = len(rewards)
        return [value * count / (count - 1) for value in centred] if count > 1 else centred
    return centred


def scale_batch(groups: Sequence[Sequence[float]]) -> list[list[float]]:
    """Divide centred advantages by σ over all groups of the step ("batch_std")."""
    spread = pstdev([value for group in groups for value in group])
    return [[value / (spread + _EPSILON) for value in group] for group in groups]


def has_signal(rewards: Sequence[float], noise: float = 0.0) -> bool:
    """Whether the rewards differ by more than the judge's own repeat noise: else the group teaches nothing."""
    return max(rewards) - min(rewards) > max(noise, _EPSILON)
