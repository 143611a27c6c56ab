"""Owns how many calls of a key may be under way at once, in this process. Must not queue: what is too much is told."""

from __future__ import annotations

from uuid import UUID

from gateway.core.errors import StepdownError
from gateway.routing.snapshot import KeyInForce


class Slots:
    """Counts the calls under way of keys that have a limit."""

    def __init__(self) -> None:
        self._taken: dict[UUID, int] = {}

    def take(self, key: KeyInForce) -> None:
        """Counts a call in; `give` counts it out. Raises StepdownError (429) where the key has no place left."""
        taken = self._taken.get(key.id, 0)
        if key.max_concurrent is not None and taken >= key.max_concurrent:
            raise StepdownError(
                429, "concurrency_limit", f"{taken} calls of this key are under way, as many as it may have.",
                hint="Wait for one to end, or raise the key's `max_concurrent`.",
            )  # fmt: skip
        self._taken[key.id] = taken + 1

    def give(self, key: KeyInForce) -> None:
        """Counts it out."""
        left = self._taken.pop(key.id) - 1
        if left:
            self._taken[key.id] = left
