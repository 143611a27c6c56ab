"""Owns learning rates: a good start from a model's width, and the warm-up. Trains nothing."""

_WIDTH_POWER = {"qwen2": 0.08, "qwen3": 0.08}
_LLAMA_LIKE = 0.78


def sft_learning_rate(hidden_size: int, model_type: str = "llama") -> float:
    """5e-4 · (2000 / H)^P, P by family: about 1.3e-3 for H = 576 (Llama-like)."""
    return float(5e-4 * (2000 / hidden_size) ** _WIDTH_POWER.get(model_type, _LLAMA_LIKE))


def rl_learning_rate(hidden_size: int, model_type: str = "llama") -> float:
    """A tenth of the rate for SFT."""
    return sft_learning_rate(hidden_size, model_type) / 10


def warmed_up(rate: float, step: int, warmup_steps: int) -> float:
    """Linear from rate / warmup_steps at step 0 to `rate`, constant after."""
    return rate * min(1.0, (step + 1) / max(1, warmup_steps))
