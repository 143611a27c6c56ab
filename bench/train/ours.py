"""Our side of the bench: `rl.trainer.Trainer` with its default settings, one process, asked through `wire`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from bench.train import wire
from rl.advantages import group_advantages
from rl.trainer import Trainer, TrainerSpec
from rl.types import Datum, LossSpec

BATCH = 16
RATE = 1e-4


class Ours:
    """A trainer and the work that both sides do."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.work: dict[str, Any] = json.loads(Path(setup["work"]).read_text())
        self.trainer = Trainer(
            setup["model"],
            TrainerSpec(rank=setup["rank"], alpha=setup["alpha"], dtype=setup["dtype"], seed=setup["seed"]),
        )

    def sft(self, name: str) -> dict[str, Any]:
        """Every example once, sixteen to a step."""
        data = [Datum(row["tokens"], row["weights"]) for row in self.work[name]]
        began = time.perf_counter()
        for start in range(0, len(data), BATCH):
            stats = self.trainer.forward_backward(data[start : start + BATCH], LossSpec("cross_entropy"))
            self.trainer.optim_step(RATE)
        return {"seconds": time.perf_counter() - began, "examples": len(data), "loss": stats.loss}

    def grpo(self, name: str) -> dict[str, Any]:
        """One step over all groups."""
        data = rollouts(self.work[name])
        began = time.perf_counter()
        stats = self.trainer.forward_backward(data, LossSpec("cispo"))
        forward_backward = time.perf_counter() - began
        self.trainer.optim_step(RATE)
        return {
            "seconds": time.perf_counter() - began,
            "optimizer_s": time.perf_counter() - began - forward_backward,
            "packed_tokens": stats.packed_tokens,
            "plain_tokens": stats.plain_tokens,
        }


def rollouts(groups: list[dict[str, Any]]) -> list[Datum]:
    """The groups' completions with advantages r − mean(r)."""
    data = []
    for number, group in enumerate(groups):
        advantages = group_advantages(group["rewards"])
        for completion, advantage in zip(group["completions"], advantages, strict=True):
            tokens = [*group["prompt"], *completion]
            weights = [0.0] * len(group["prompt"]) + [1.0] * len(completion)
            data.append(Datum(tokens, weights, advantage=advantage, group=number))
    return data


def load(setup: dict[str, Any]) -> dict[str, Any]:
    """Load the model; what can be asked."""
    ours = Ours(setup)
    return {"sft": ours.sft, "grpo": ours.grpo}


if __name__ == "__main__":
    wire.serve(load)
