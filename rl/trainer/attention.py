"""Owns attention over a prefix tree, for any Hugging Face decoder, as an attention implementation of its own.

The tree travels as a keyword of the model's forward, which hands it down to every layer, so that a layer computed again
for its backward pass finds it too. How attention is computed is the device's matter: `blocked` or `flex`.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from rl.trainer.blocked import BlockedTree, blocked_tree
from rl.trainer.flex import FlexTree

NAME = "stepdown_tree"


def attention_tree(positions: Tensor, end: Tensor, size: int, device: str) -> BlockedTree | FlexTree:
    """What a forward over the tree (depth-first `positions` and subtree `end`, each [T]) needs: `model(…, tree=it)`.
    `size`: queries in a block on a CPU."""
    if device.startswith("cuda"):
        return FlexTree(positions.to(device), end.to(device), {})
    return blocked_tree(positions, end, size)


def _forward(
    _module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    tree: BlockedTree | FlexTree | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """[1, heads, T, head] in, [1, T, heads, head] out, as every implementation registered with transformers."""
    if tree is None:
        raise RuntimeError(
            "tree attention was called without its tree: this model does not hand keywords to its layers"
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    out = tree.attend(query[0], key[0], value[0], scale, sliding_window)
    return out.transpose(0, 1)[None], None


def _no_mask(*_: Any, **__: Any) -> None:
    return None


AttentionInterface.register(NAME, _forward)
AttentionMaskInterface.register(NAME, _no_mask)
