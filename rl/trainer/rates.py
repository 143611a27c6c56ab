"""Owns learning rates: a good start from a model's width, warm-up and decay. Trains nothing."""

import math

_WIDTH_POWER = {"qwen2": 0.08, "qwen3": 0.08}
_LLAMA_LIKE = 0.78


def sft_learning_rate(hidden_size: int, model_type: str = "llama") -> float:
    """5e-4 · (2000 / H)^P, P by family: about 1.3e-3 for H = 576 (Llama-like)."""
    return float(5e-4 * (2000 / hidden_size) ** _WIDTH_POWER.get(model_type, _LLAMA_LIKE))


def rl_learning_rate(hidden_size: int, model_type: str = "llama") -> float:
    """Three eighths of the rate for SFT: about 5e-4 for H = 576; steady with a warm-up over the first steps."""
    return 0.375 * sft_learning_rate(hidden_size, model_type)


def warmed_up(rate: float, step: int, warmup_steps: int) -> float:
    """Linear from rate / warmup_steps at step 0 to `rate`, constant after."""
    return rate * min(1.0, (step + 1) / max(1, warmup_steps))


def decayed(rate: float, step: int, decay_steps: int) -> float:
    """`rate` at step 0, falling with the inverse square root of the steps (as Vaswani et al. 2017, eq. 3); half of it
    at step 3 · decay_steps. It needs no horizon, so a phase that goes on as long as it gains can use it."""
    return rate * math.sqrt(decay_steps / (decay_steps + step))
