"""Owns how an adapted linear layer computes: on the merged weight, with gradients for the two small matrices alone.

y = x·(W + s·B·A)ᵀ costs one matrix product forward and one backward, as without an adapter, and it is what the
sampler and the served student compute, to the same rounding. The merged weight is made anew from W after every
optimizer step, so nothing drifts. Must not choose which layers are adapted.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Self

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
    def frozen_at(self, adapter: Mapping[str, Tensor] | None) -> Iterator[None]:
        """Within this context the model is the base model, or the base model with `adapter` (peft's names): a reference
        to compare with. Call it without gradients."""
        for layer in self.layers:
            layer.freeze(adapter)
        try:
            yield
        finally:
            for layer in self.layers:
                layer.frozen_at = None


class _Layer:
    """One adapted linear layer; replaces the peft module's forward."""

    def __init__(self, name: str, module: PeftLinear, adapter: str) -> None:
        self.name, self.module = name, module
        self.base: nn.Linear = module.get_base_layer()
        self.a: Tensor = module.lora_A[adapter].weight
        self.b: Tensor = module.lora_B[adapter].weight
        self.scale: float = module.scaling[adapter]
        self.merged = torch.empty_like(self.base.weight, requires_grad=False)
        self.frozen_at: tuple[Tensor, Tensor] | Literal["base"] | None = None
        module.forward = self._forward

    def merge(self) -> None:
        self.merged.copy_(self._merged(self.b, self.a))

    def freeze(self, adapter: Mapping[str, Tensor] | None) -> None:
        names = (f"{self.name}.lora_{factor}.weight" for factor in "BA")
        self.frozen_at = "base" if adapter is None else (adapter[next(names)], adapter[next(names)])

    def _merged(self, b: Tensor, a: Tensor) -> Tensor:
        return torch.addmm(self.base.weight.to(a.dtype), b, a, alpha=self.scale)

    def _forward(self, x: Tensor, *_: Any, **__: Any) -> Tensor:
        if self.frozen_at is not None:
            # A reference's weights are made layer by layer when needed: a second set of them would have to be held.
            frozen = self.base.weight if self.frozen_at == "base" else self._merged(*self.frozen_at).to(x.dtype)
            return linear(x, frozen, self.base.bias)
        out: Tensor = _AdaptedLinear.apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
            x, self.merged, self.base.bias, self.a, self.b, self.scale
        )
        return out
