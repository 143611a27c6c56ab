"""Owns attention over a prefix tree on a GPU: flex-attention with a block mask (Dong et al. 2024, arXiv:2412.05496).

The mask is a rule over two node numbers, so only the blocks of the T × T plane that hold something are computed. On a
CPU, where the tests compare it with a dense mask, it runs uncompiled and slowly. It has not run on a GPU yet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

MaskRule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class FlexTree:
    """A tree's `positions` and subtree `end`, each [T] on the device, and the block masks made of them by window."""

    positions: Tensor
    end: Tensor
    masks: dict[int | None, BlockMask]

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
        """`query` [heads, T, head], `key` and `value` [key heads, T, head] -> [heads, T, head]."""
        if window not in self.masks:
            total = self.end.numel()
            rule = tree_mask(self.positions, self.end, window)
            self.masks[window] = create_block_mask(rule, None, None, total, total, device=query.device)
        attention = _compiled() if query.is_cuda else flex_attention
        out: Tensor = attention(
            query[None], key[None], value[None], block_mask=self.masks[window], scale=scale, enable_gqa=True
        )
        return out[0]


def tree_mask(positions: Tensor, end: Tensor, window: int | None) -> MaskRule:
    """Who sees whom: node q sees k where k is its ancestor or itself (k <= q < end[k]), less than `window` away."""

    def sees(_batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        ancestor = (k <= q) & (q < end[k])
        return ancestor if window is None else ancestor & (positions[q] - positions[k] < window)

    return sees


@cache
def _compiled() -> Any:
    # dynamic: trees are of another size at every micro-batch.
    return torch.compile(flex_attention, dynamic=True)
