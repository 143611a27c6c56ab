"""Owns recognising that a call goes on from an earlier one: which call, and how many of its items are shared.

What is remembered is bounded and in memory: an app's next turn comes soon. A turn whose beginning is not remembered is
stored with all of its items' hashes, which costs some bytes and nothing else.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

_REMEMBERED = 20_000


@dataclass(frozen=True)
class Parent:
    """An earlier call. `shared`: how many items of what it was asked, and of its answer after them, come again."""

    call_id: UUID
    shared: int


class Threads:
    """The beginnings of the latest calls, by project and hash."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Parent] = OrderedDict()

    def parent(self, project_id: UUID, items: Sequence[bytes]) -> Parent | None:
        """The call with the longest beginning that these items go on from."""
        hashes = _beginnings(project_id, items)
        for beginning in reversed(hashes):
            parent = self._known.get(beginning)
            if parent is not None:
                return parent
        return None

    def remember(self, project_id: UUID, call_id: UUID, items: Sequence[bytes], answer: bytes | None) -> None:
        """Takes a call: others may go on from what it was asked, or from its answer (the hash of that message)."""
        if not items:
            return
        asked = _beginnings(project_id, items)[-1]
        # The first of several equal ones stays: a line of ancestors is as long as its conversation, no longer.
        self._known.setdefault(asked, Parent(call_id, len(items)))
        if answer is not None:
            self._known.setdefault(_next(asked, answer), Parent(call_id, len(items) + 1))
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Drops everything, as after a transaction that failed: its calls are in no database."""
        self._known.clear()


def _beginnings(project_id: UUID, items: Sequence[bytes]) -> list[bytes]:
    found, hashed = [], project_id.bytes
    for item in items:
        hashed = _next(hashed, item)
        found.append(hashed)
    return found


def _next(hashed: bytes, item: bytes) -> bytes:
    return hashlib.sha256(hashed + item).digest()[:16]
