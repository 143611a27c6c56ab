"""Owns how RMS norms compute while training: they keep their input alone, not the fp32 copies that autograd would.

A decoder holds two to four of them a layer, and they made up a third of what a layer keeps for its backward pass. One
that computes something else (a weight around zero, say) is left as it is: each is tried before it is replaced.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


class _RmsNorm(torch.autograd.Function):
    """w·(x / rms(x)), computed in fp32 and rounded where Hugging Face's Llama rounds; w is frozen."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        exact = x.float()
        scale = exact.square().mean(-1, keepdim=True).add_(epsilon).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        return weight * (exact * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        x, weight, scale = ctx.saved_tensors
        pull = (grads[0] * weight).float()
        unit = x.float().mul_(scale)
        along = (pull * unit).mean(-1, keepdim=True)
        return pull.sub_(unit.mul_(along)).mul_(scale).to(x.dtype), None, None


def _lean(norm: Any, x: Tensor) -> Tensor:
    out: Tensor = _RmsNorm.apply(x, norm.weight, norm.variance_epsilon)  # type: ignore[no-untyped-call]
    return out


@torch.no_grad()
def slim_norms(model: nn.Module) -> int:
    """Replace the forward of every RMS norm that computes what `_RmsNorm` does; how many there were."""
    replaced = 0
    for module in model.modules():
        weight, epsilon = getattr(module, "weight", None), getattr(module, "variance_epsilon", None)
        if not (isinstance(weight, Tensor) and weight.dim() == 1 and isinstance(epsilon, float)):
            continue
        probe = torch.linspace(-3, 3, 2 * weight.numel(), dtype=weight.dtype, device=weight.device).view(2, -1)
        if torch.equal(module(probe), _lean(module, probe)):
            module.forward = partial(_lean, module)
            replaced += 1
    return replaced
