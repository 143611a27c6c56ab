"""Owns attention over a prefix tree on a CPU: queries in blocks, each block against just the keys that it can see.

Nodes lie depth first, so whatever a block of consecutive queries [s, e) may see is: the ancestors of s, and [s, e)
itself. The cost grows with T · (depth + block), not with T². Must not know what is trained.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True, slots=True)
class BlockedTree:
    """Queries in `count` blocks of `size`; `keys` [count, K] are each block's keys, `mask` [count, 1, size, K] who sees
    whom, `distance` [count, 1, size, K] how many tokens apart they stand (for sliding windows). T is padded to
    count · size."""

    size: int
    count: int
    keys: Tensor
    mask: Tensor
    distance: Tensor

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
        """`query` [heads, T, head], `key` and `value` [key heads, T, head] -> [heads, T, head]."""
        heads, total, width = query.shape
        mask = self.mask if window is None else self.mask & (self.distance < window)
        fill = self.count * self.size - total
        q = pad(query, (0, 0, 0, fill)) if fill else query
        q = q.reshape(heads, self.count, self.size, width).transpose(0, 1)
        out = _by_products(q, self._of_blocks(key), self._of_blocks(value), mask, scale)
        return out.transpose(0, 1).reshape(heads, self.count * self.size, width)[:, :total]

    def _of_blocks(self, states: Tensor) -> Tensor:
        """[heads, T, head] -> [count, heads, K, head]: each block's own keys or values."""
        picked = states.index_select(1, self.keys.reshape(-1))
        return picked.reshape(states.shape[0], self.count, -1, states.shape[-1]).transpose(0, 1)


def blocked_tree(positions: Tensor, end: Tensor, size: int) -> BlockedTree:
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
    return BlockedTree(size, count, keys, mask.unsqueeze(1), distance.unsqueeze(1))


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
