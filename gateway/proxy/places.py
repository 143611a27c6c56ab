"""Owns how many connections there may be to one origin at once, and who waits for one. Must open none itself."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque

from gateway.proxy.http1 import UpstreamError

Origin = tuple[str, int, bool]
"""Host, port, whether TLS."""


class NoneFree(UpstreamError):
    """No connection became free in time. Nothing was sent."""


class Places:
    """Places for connections, by origin. `most` 0: any number."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: dict[Origin, int] = defaultdict(int)
        self._waiters: dict[Origin, deque[asyncio.Future[None]]] = defaultdict(deque)

    def take(self, origin: Origin) -> bool:
        """Takes a place for a new connection, if there is one."""
        if self.most and self._taken[origin] >= self.most:
            return False
        self._taken[origin] += 1
        return True

    def give(self, origin: Origin) -> None:
        """Gives it back: the connection is gone, or never came about."""
        self._taken[origin] -= 1
        self.wake(origin)

    def wake(self, origin: Origin) -> None:
        """A connection, or a place for one, is free: who waits longest may look."""
        waiters = self._waiters.get(origin)
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def freed(self, origin: Origin) -> None:
        """Waits until something is free. Somebody else may be quicker to take it."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[origin].append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.wake(origin)  # it was for us, and we are no longer there
            raise
