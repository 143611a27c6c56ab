"""Owns how an adapted linear layer computes: on the merged weight, with gradients for the two small matrices alone.

y = x·(W + s·B·A)ᵀ costs one matrix product forward and one backward, as without an adapter, and it is what the
sampler and the served student compute, to the same rounding. The merged weight is made anew from W after every
optimizer step, so nothing drifts. Must not choose which layers are adapted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from peft.tuners.lora import Linear as PeftLinear
from torch import Tensor, nn
from torch.nn.functional import linear


class _AdaptedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, a: Tensor, b: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x, weight, a, b)
        ctx.scale = scale
        return linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None, Tensor, Tensor, None]:
        x, weight, a, b = ctx.saved_tensors
        grad = grads[0]
        grad_x = grad @ weight if ctx.needs_input_grad[0] else None
        rows, outs = x.reshape(-1, x.shape[-1]), grad.reshape(-1, grad.shape[-1])
        # dW = outsᵀ·rows is never formed: dB = s·outsᵀ·(rows·Aᵀ) and dA = s·(outs·B)ᵀ·rows.
        grad_b = outs.T @ (rows @ a.to(x.dtype).T)
        grad_a = (outs @ b.to(x.dtype)).T @ rows
        return grad_x, None, None, grad_a.to(a.dtype) * ctx.scale, grad_b.to(b.dtype) * ctx.scale, None


class AdaptedLayers:
    """Every LoRA layer that peft put into a model, switched to compute on merged weights."""

    def __init__(self, model: nn.Module, adapter: str = "default") -> None:
        self.layers: list[_Layer] = [
            _Layer(name, module, adapter) for name, module in model.named_modules() if isinstance(module, PeftLinear)
        ]
        if not self.layers:
            raise ValueError("the model has no linear layer with an adapter")
        self.merge()

    def __iter__(self) -> Iterator["_Layer"]:
        return iter(self.layers)

    @torch.no_grad()
    def merge(self) -> Self:
        """Make the merged weights from W and the adapter as it is now."""
        for layer in self.layers:
            layer.merge()
        return self

    @contextmanager
    def off(self) -> Iterator[None]:
        """Within this context the model is the base model."""
        for layer in self.layers:
            layer.enabled = False
        try:
            yield
        finally:
            for layer in self.layers:
                layer.enabled = True


class _Layer:
    """One adapted linear layer; replaces the peft module's forward."""

    def __init__(self, name: str, module: PeftLinear, adapter: str) -> None:
        self.name, self.module = name, module
        self.base: nn.Linear = module.get_base_layer()
        self.a: Tensor = module.lora_A[adapter].weight
        self.b: Tensor = module.lora_B[adapter].weight
        self.scale: float = module.scaling[adapter]
        self.merged = torch.empty_like(self.base.weight, requires_grad=False)
        self.enabled = True
        module.forward = self._forward

    def merge(self) -> None:
        weight = self.base.weight
        self.merged.copy_(torch.addmm(weight.to(self.a.dtype), self.b, self.a, alpha=self.scale))

    def _forward(self, x: Tensor, *_: Any, **__: Any) -> Tensor:
        if not self.enabled:
            return linear(x, self.base.weight, self.base.bias)
        out: Tensor = _AdaptedLinear.apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
            x, self.merged, self.base.bias, self.a, self.b, self.scale
        )
        return out
