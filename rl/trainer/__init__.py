"""Training: one trainer for SFT and GRPO, with a LoRA adapter over a prefix tree. Samples and judges nothing."""

from rl.trainer.model import UnsupportedModelError
from rl.trainer.rates import decayed, rl_learning_rate, sft_learning_rate, warmed_up
from rl.trainer.trainer import Trainer, TrainerSpec, TrainingError

__all__ = [
    "Trainer",
    "TrainerSpec",
    "TrainingError",
    "UnsupportedModelError",
    "decayed",
    "rl_learning_rate",
    "sft_learning_rate",
    "warmed_up",
]
