"""Owns the last step of the model: from hidden states to log-probs of chosen tokens, without keeping any logits.

For log p(t | h) = h·w_t − log Σ_v exp(h·w_v) the gradient is w_t − Σ_v p_v·w_v. The second part is a vector per
position, so it is computed beside the log-prob and kept in place of the logits (V numbers): one product with the
output matrix forward, one for the gradient, none repeated. Must not know what the log-probs are for.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_CHUNK = 256


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        narrow: Tensor,
        rows: Tensor,
        tokens: Tensor,
        temperature: float,
        learn: bool,
    ) -> Tensor:
        """`hidden` [N, H], `weight` [V, H] fp32, `narrow` the same in the model's type; for each pair the log-prob of
        `tokens` [P] at position `rows` [P]."""
        out = torch.empty(rows.numel(), dtype=torch.float32, device=hidden.device)
        mean_weight = torch.empty_like(hidden) if learn else hidden.new_empty(0)
        for start in range(0, hidden.shape[0], _CHUNK):
            part = slice(start, start + _CHUNK)
            logits = (hidden[part].float() / temperature) @ weight.T
            normaliser = logits.logsumexp(-1, keepdim=True)
            here = ((rows >= start) & (rows < start + _CHUNK)).nonzero().squeeze(-1)
            local = rows[here] - start
            out[here] = logits[local, tokens[here]] - normaliser[local, 0]
            if learn:
                probabilities = logits.sub_(normaliser).exp_()
                mean_weight[part] = probabilities.to(narrow.dtype) @ narrow
        ctx.save_for_backward(mean_weight, weight, rows, tokens)
        ctx.temperature = temperature
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None, None, None]:
        mean_weight, weight, rows, tokens = ctx.saved_tensors
        grad = grads[0].unsqueeze(-1) / ctx.temperature
        total = torch.zeros(mean_weight.shape, dtype=torch.float32, device=grad.device)
        total.index_add_(0, rows, grad * (weight[tokens] - mean_weight[rows].float()))
        return total.to(mean_weight.dtype), None, None, None, None, None, None


@dataclass(frozen=True, slots=True)
class Head:
    """The output matrix [V, H], in fp32 for the log-probs and as the model holds it for their gradient."""

    exact: Tensor
    narrow: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> "Head":
        return cls(weight.float(), weight)

    def logprobs(self, hidden: Tensor, rows: Tensor, tokens: Tensor, temperature: float = 1.0) -> Tensor:
        """Log-probs [P], fp32 with gradient to `hidden` [N, H]; pair p asks for `tokens[p]` at position `rows[p]`.

        They are those of softmax(logits / temperature), the distribution that a sampler at this temperature draws from.
        """
        learn = torch.is_grad_enabled() and hidden.requires_grad
        out: Tensor = _TokenLogprobs.apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
            hidden, self.exact, self.narrow, rows, tokens, temperature, learn
        )
        return out
