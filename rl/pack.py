"""Owns packing: many sequences become one prefix tree, so that a shared prompt, turn or beginning is computed once.

Sequences are taken in lexicographic order, which lays the tree out depth first: the tokens below a node are the
contiguous range `[node, end[node])`, and "k is an ancestor of q" is just `k <= q < end[k]`. Knows no model, no loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rl.types import Datum, MaskError


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A prefix tree of T tokens and where each sequence's trained tokens are read from it.

    `ids`, `positions`, `end`: [T]. A *pair* is a distinct (tree node, next token) that is trained: `pair_rows` [P]
    indexes `nodes` [N], the distinct nodes that predict, `pair_tokens` [P] are the predicted tokens. Flat arrays [F]
    run over every trained token of every sequence: `flat_pair` finds its pair, `flat_sequence` its sequence (0…S-1,
    whose index in the caller's data is `data_index[s]`), `flat_token` its place in that sequence.
    """

    ids: Tensor
    positions: Tensor
    end: Tensor
    nodes: Tensor
    pair_rows: Tensor
    pair_tokens: Tensor
    flat_pair: Tensor
    flat_sequence: Tensor
    flat_token: Tensor
    data_index: list[int]

    @property
    def size(self) -> int:
        return int(self.ids.numel())


def check_masks(data: Sequence[Datum]) -> int:
    """Return the number of trained tokens; raise MaskError where a mask must be wrong (law 4: masks fail closed)."""
    if not data:
        raise MaskError("an empty batch cannot be trained on")
    trained = sum(sum(1 for weight in datum.weights if weight) for datum in data)
    total = sum(len(datum.tokens) for datum in data)
    if trained == 0:
        raise MaskError(f"none of the batch's {total} tokens is marked for training: the assistant mask is all zero")
    if trained == total - len(data):
        raise MaskError(
            f"all {total} tokens of the batch are marked for training, prompts included: the mask is all one"
        )
    return trained


def pack(data: Sequence[Datum], max_tokens: int) -> list[MicroBatch]:
    """Pack into trees of at most `max_tokens` nodes (a longer sequence gets one of its own).

    The last token of a sequence predicts nothing, so it becomes a node only where another sequence goes on from it.
    """
    batches: list[MicroBatch] = []
    building = _Tree()
    # Reading lists as tuples makes the sort lexicographic whatever sequence type the caller used.
    for index in sorted(range(len(data)), key=lambda i: tuple(data[i].tokens)):
        datum = data[index]
        if building.ids and len(building.ids) + building.new_nodes(datum) > max_tokens:
            batches.append(building.finish())
            building = _Tree()
        building.add(index, datum)
    if building.ids:
        batches.append(building.finish())
    return batches


class _Tree:
    """A tree being built, one sequence after the other; `path` holds the nodes of the sequence added last."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.end: list[int] = []
        self.path: list[int] = []
        self.pairs: dict[tuple[int, int], int] = {}
        self.flat: list[tuple[int, int, int]] = []
        self.data_index: list[int] = []

    def _shared(self, datum: Datum) -> int:
        limit = min(len(self.path), len(datum.tokens) - 1)
        shared = 0
        while shared < limit and self.ids[self.path[shared]] == datum.tokens[shared]:
            shared += 1
        return shared

    def new_nodes(self, datum: Datum) -> int:
        return len(datum.tokens) - 1 - self._shared(datum)

    def add(self, index: int, datum: Datum) -> None:
        shared = self._shared(datum)
        self._close(shared)
        for place in range(shared, len(datum.tokens) - 1):
            self.path.append(len(self.ids))
            self.ids.append(datum.tokens[place])
            self.positions.append(place)
            self.end.append(-1)
        sequence = len(self.data_index)
        self.data_index.append(index)
        for place in range(1, len(datum.tokens)):
            if datum.weights[place]:
                pair = self.pairs.setdefault((self.path[place - 1], datum.tokens[place]), len(self.pairs))
                self.flat.append((pair, sequence, place))

    def _close(self, keep: int) -> None:
        """Subtrees below depth `keep` are complete: everything added so far lies in them."""
        for node in self.path[keep:]:
            self.end[node] = len(self.ids)
        del self.path[keep:]

    def finish(self) -> MicroBatch:
        self._close(0)
        nodes = sorted({node for node, _ in self.pairs})
        row = {node: at for at, node in enumerate(nodes)}
        flat = torch.tensor(self.flat, dtype=torch.long).reshape(-1, 3)
        return MicroBatch(
            ids=torch.tensor(self.ids),
            positions=torch.tensor(self.positions),
            end=torch.tensor(self.end),
            nodes=torch.tensor(nodes, dtype=torch.long),
            pair_rows=torch.tensor([row[node] for node, _ in self.pairs], dtype=torch.long),
            pair_tokens=torch.tensor([token for _, token in self.pairs], dtype=torch.long),
            flat_pair=flat[:, 0],
            flat_sequence=flat[:, 1],
            flat_token=flat[:, 2],
            data_index=self.data_index,
        )
