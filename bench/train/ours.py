"""Our side of the bench: `rl.trainer.Trainer` with its default settings, one process, asked through `wire`."""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

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
        wanted = ("rank", "alpha", "dtype", "seed", "recompute")
        self.trainer = Trainer(setup["model"], TrainerSpec(**{name: setup[name] for name in wanted if name in setup}))

    def sft(self, name: str) -> dict[str, Any]:
        """Every example once, sixteen to a step."""
        data = [Datum(row["tokens"], row["weights"]) for row in self.work[name]]
        began = time.perf_counter()
        for start in range(0, len(data), BATCH):
            stats = self.trainer.forward_backward(data[start : start + BATCH], LossSpec("cross_entropy"))
            self.trainer.optim_step(RATE)
        return {"seconds": time.perf_counter() - began, "examples": len(data), "loss": stats.loss}

    def parity_setup(self, folder: str, seed: int = 3) -> dict[str, Any]:
        """Give the adapter something to say, and write beside it rollouts with log-probs of an older policy."""
        torch.manual_seed(seed)
        noise = {name: torch.randn_like(value) * 0.01 for name, value in self.trainer.adapter().items()}
        self.trainer.set_adapter(noise)
        self.trainer.save(Path(folder) / "adapter")
        draw = random.Random(seed)
        data = rollouts(self.work["parity"])
        now, base = self.trainer.logprobs(data), self.trainer.logprobs(data, base=True)
        self.parity_data = [
            replace(datum, old_logprobs=[value + draw.uniform(-0.4, 0.4) if value else 0.0 for value in values])
            for datum, values in zip(data, now, strict=True)
        ]
        rows = [asdict(datum) | {"reference": values} for datum, values in zip(self.parity_data, base, strict=True)]
        (Path(folder) / "rollouts.json").write_text(json.dumps(rows))
        return {}

    def parity(self, spec: dict[str, Any], theirs: str, loss: float, sft: bool = False) -> dict[str, Any]:
        """How far our loss and gradients are from theirs: absolute, and the gradients' gap over their length."""
        rows = self.work["sft_shared"][:4]
        data = [Datum(row["tokens"], row["weights"]) for row in rows] if sft else self.parity_data
        stats = self.trainer.forward_backward(data, LossSpec(**spec))
        found, gap, square, length = load_file(theirs), 0.0, 0.0, 0.0
        for name, value in self.trainer.gradients().items():
            difference = value - found.pop(name)
            gap = max(gap, float(difference.abs().max()))
            square += float(difference.square().sum())
            length += float(value.square().sum())
        self.trainer.discard()
        if found:
            raise LookupError(f"TRL has gradients that we have not: {sorted(found)[:3]}")
        return {
            "loss": stats.loss,
            "loss_gap": abs(stats.loss - loss),
            "gradient_gap": gap,
            "gradient_relative": (square / length) ** 0.5,
        }

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
    return {"sft": ours.sft, "grpo": ours.grpo, "parity_setup": ours.parity_setup, "parity": ours.parity}


if __name__ == "__main__":
    wire.serve(load)
