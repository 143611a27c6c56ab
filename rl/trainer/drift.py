"""Owns the drift panel's figures: how far training has moved the weights and what they say. Changes nothing.

Two sets of weights are compared, those of now and those of then: the base model, or a checkpoint. The KL is the whole
sum over the vocabulary at every predicted place, not an estimate from the tokens that happen to stand there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file
from torch import Tensor

from rl.pack import pack
from rl.trainer import checkpoint
from rl.types import Datum, Drift

if TYPE_CHECKING:
    from rl.trainer.trainer import Trainer

MOVED = 0.1
"""Nats from which a token's log-prob counts as moved."""
_ROWS = 128


@torch.no_grad()
def measure_drift(trainer: "Trainer", probe: Sequence[Datum], since: Path | None) -> Drift:
    """‖ΔW‖/‖W‖ over all adapted layers, and on the probe's trained tokens: the share that moved, KL(then ‖ now) per
    place, and how much less likely they are now (nats a token; negative: more)."""
    current = trainer.adapter()
    earlier = load_file(since / checkpoint.ADAPTER) if since else None
    batches = pack(probe, trainer.spec.micro_tokens)
    now = [trainer._hidden(batch)[batch.nodes.to(trainer.device)] for batch in batches]
    with trainer.layers.frozen_at(earlier):
        then = [trainer._hidden(batch)[batch.nodes.to(trainer.device)] for batch in batches]
    head = trainer._model.get_base_model().get_output_embeddings().weight.detach().float()
    fallen, kl = [], []
    for batch, after, before in zip(batches, now, then, strict=True):
        gaps, divergences = _compare(head, after, before, batch.pair_rows, batch.pair_tokens)
        fallen.append(gaps[batch.flat_pair])
        kl.append(divergences)
    gap, divergence = torch.cat(fallen), torch.cat(kl)
    return Drift(
        weight_ratio=_weight_ratio(trainer, current, earlier),
        moved_share=float((gap.abs() > MOVED).float().mean()),
        kl=float(divergence.mean()),
        forgotten=float(gap.mean()),
    )


def _compare(head: Tensor, now: Tensor, then: Tensor, rows: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """For each pair the fall of its token's log-prob [P], and for each place KL(then ‖ now) [N]; on the CPU."""
    gaps, divergences = torch.empty(rows.numel()), torch.empty(now.shape[0])
    for start in range(0, now.shape[0], _ROWS):
        part = slice(start, start + _ROWS)
        after = (now[part].float() @ head.T).log_softmax(-1)
        fall = (then[part].float() @ head.T).log_softmax(-1)
        likely = fall.exp()
        fall -= after
        divergences[part] = (likely * fall).sum(-1).clamp_min(0).cpu()
        here = ((rows >= start) & (rows < start + _ROWS)).nonzero().squeeze(-1)
        gaps[here] = fall[(rows[here] - start).to(fall.device), tokens[here].to(fall.device)].cpu()
    return gaps, divergences


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
