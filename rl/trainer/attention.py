"""Owns attention over a prefix tree, for any Hugging Face decoder, as an attention implementation of its own.

Nodes lie depth first, so whatever a block of consecutive queries [s, e) may see is: the ancestors of s, and [s, e)
itself. Each block attends to just those keys: the cost grows with T · (depth + block), not with T². Must not know
what is trained.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

NAME = "stepdown_tree"


@dataclass(frozen=True, slots=True)
class TreeBlocks:
    """Queries in `count` blocks of `size`; `keys` [count, K] are each block's keys, `mask` [count, 1, size, K] who sees
    whom, `distance` [count, 1, size, K] how many tokens apart they stand (for sliding windows). T is padded to
    count · size."""

    size: int
    count: int
    keys: Tensor
    mask: Tensor
    distance: Tensor

    def to(self, device: str) -> "TreeBlocks":
        return TreeBlocks(self.size, self.count, self.keys.to(device), self.mask.to(device), self.distance.to(device))


_current: ContextVar[TreeBlocks | None] = ContextVar("stepdown_tree_blocks", default=None)


def tree_blocks(positions: Tensor, end: Tensor, size: int = 32) -> TreeBlocks:
    """Cut a tree (depth-first `positions` and subtree `end`, each [T]) into blocks of `size` queries."""
    total = positions.numel()
    size = min(size, total)
    count = -(-total // size)
    nodes = torch.arange(total)
    starts = [block * size for block in range(count)]
    # One row of keys per block: ancestors of its first query, then the block itself, then padding (-1).
    rows = [torch.cat([nodes[:s][end[:s] > s], torch.arange(s, s + size)]) for s in starts]
    width = max(row.numel() for row in rows)
    keys = torch.stack([pad(row, (0, width - row.numel()), value=-1) for row in rows])
    known = (keys >= 0) & (keys < total)
    keys = torch.where(known, keys, 0)
    queries = torch.arange(count * size).reshape(count, size, 1)
    real = queries < total
    queries = queries.clamp(max=total - 1)
    k = keys.unsqueeze(1)
    mask = known.unsqueeze(1) & (k <= queries) & (queries < end[keys].unsqueeze(1))
    # A padded query must see something, or its softmax divides by zero; its output is cut off afterwards.
    mask[..., 0] |= ~real.squeeze(-1)
    distance = positions[queries] - positions[keys].unsqueeze(1)
    return TreeBlocks(size, count, keys, mask.unsqueeze(1), distance.unsqueeze(1))


@contextmanager
def attending(blocks: TreeBlocks) -> Iterator[None]:
    """Within this context the model's attention runs over these blocks."""
    token = _current.set(blocks)
    try:
        yield
    finally:
        _current.reset(token)


def _forward(
    _module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """[1, heads, T, head] in, [1, T, heads, head] out, as every implementation registered with transformers."""
    blocks = _current.get()
    if blocks is None:
        raise RuntimeError("tree attention was called outside `attending(...)`")
    heads, total, width = query.shape[1:]
    mask = blocks.mask if sliding_window is None else blocks.mask & (blocks.distance < sliding_window)
    fill = blocks.count * blocks.size - total
    q = pad(query[0], (0, 0, 0, fill)) if fill else query[0]
    q = q.reshape(heads, blocks.count, blocks.size, width).transpose(0, 1)
    k, v = (_of_blocks(states[0], blocks) for states in (key, value))
    if query.is_cuda:
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling, enable_gqa=heads != k.shape[1])
    else:
        out = _by_products(q, k, v, mask, width**-0.5 if scaling is None else scaling)
    return out.permute(0, 2, 1, 3).reshape(1, blocks.count * blocks.size, heads, width)[:, :total], None


def _of_blocks(states: Tensor, blocks: TreeBlocks) -> Tensor:
    """[heads, T, head] -> [count, heads, K, head]: each block's own keys or values."""
    picked = states.index_select(1, blocks.keys.reshape(-1))
    return picked.reshape(states.shape[0], blocks.count, -1, states.shape[-1]).transpose(0, 1)


def _by_products(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Plain matrix products: on a CPU more than twice as fast, backward, as its fused kernel with small blocks.

    Query heads that share a key head are laid one below the other, so that each product is as large as it can be.
    """
    count, heads, size, width = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    shared = heads // kv_heads
    scores = (q * scale).reshape(count, kv_heads, shared * size, width) @ k.transpose(-1, -2)
    scores = scores.view(count, kv_heads, shared, size, keys)
    scores = scores.masked_fill(~mask.unsqueeze(2), float("-inf"))
    weights = scores.softmax(-1).view(count, kv_heads, shared * size, keys)
    return (weights @ v).view(count, heads, size, width)


def _no_mask(*_: Any, **__: Any) -> None:
    return None


AttentionInterface.register(NAME, _forward)
AttentionMaskInterface.register(NAME, _no_mask)
