"""Owns the order in which examples are seen: a function of seed and step alone, so that a resumed run sees the same."""

from __future__ import annotations

import random


def batch_of(seed: str, step: int, size: int, batch: int) -> list[int]:
    """Indices of the examples of step `step` (from 1): every pass over `size` examples in an order of its own."""
    first = (step - 1) * batch
    return [_order(seed, place // size, size)[place % size] for place in range(first, first + batch)]


def _order(seed: str, epoch: int, size: int) -> list[int]:
    order = list(range(size))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order
