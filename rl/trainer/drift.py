"""Owns the drift panel's figures: how far training has moved the weights and the log-probs. Changes nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file
from torch import Tensor

from rl.trainer import checkpoint
from rl.types import Datum, Drift

if TYPE_CHECKING:
    from rl.trainer.trainer import Trainer


def measure_drift(trainer: "Trainer", probe: Sequence[Datum], since: Path | None) -> Drift:
    """‖ΔW‖/‖W‖ over all adapted layers, share of the probe's tokens moved > 0.1 nats, and KL(now ‖ then) by k3."""
    now = trainer.logprobs(probe)
    current = {name: tensor.detach().clone() for name, tensor in trainer.adapter().items()}
    earlier = load_file(since / checkpoint.ADAPTER) if since else None
    if earlier is None:
        then = trainer.logprobs(probe, base=True)
    else:
        trainer.set_adapter(earlier)
        try:
            then = trainer.logprobs(probe)
        finally:
            trainer.set_adapter(current)
    gaps = torch.tensor(
        [
            before - after
            for datum, afters, befores in zip(probe, now, then, strict=True)
            for weight, after, before in zip(datum.weights, afters, befores, strict=True)
            if weight
        ]
    )
    moved = float((gaps.abs() > 0.1).float().mean())
    kl = float((gaps.exp() - 1 - gaps).mean())
    return Drift(_weight_ratio(trainer, current, earlier), moved, kl)


@torch.no_grad()
def _weight_ratio(trainer: "Trainer", now: dict[str, Tensor], then: dict[str, Tensor] | None) -> float:
    change = size = 0.0
    for layer in trainer.layers:
        b, a = _factors(now, layer.name)
        if then is not None:
            b_then, a_then = _factors(then, layer.name)
            b, a = torch.cat([b, -b_then.to(b)], 1), torch.cat([a, a_then.to(a)], 0)
        # ‖B·A‖² = trace(BᵀB · A·Aᵀ): r × r, the product itself is never formed.
        change += layer.scale**2 * float(((b.T @ b) * (a @ a.T).T).sum())
        size += float(layer.base.weight.float().pow(2).sum())
    return float((max(change, 0.0) / size) ** 0.5)


def _factors(adapter: dict[str, Tensor], layer: str) -> tuple[Tensor, Tensor]:
    return adapter[f"{layer}.lora_B.weight"].float(), adapter[f"{layer}.lora_A.weight"].float()
