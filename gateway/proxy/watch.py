"""Owns what ends a call before its answer does: the client went away, or a time limit passed.

One clock looks over all calls in flight: a timer for each would cost a fast call more than its key and route together.
Must not know what a call is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Literal

from gateway.core import metrics

TICK_S = 0.05
_NEVER = float("inf")
Receive = Callable[[], Awaitable[Any]]


class Watch:
    """One call under watch, answered by the task that began it.

    `gone`: the client went away. `expired`: the limit that passed, for which the task was cancelled: `silence`, for
    the next byte, or `total`. `answered`: all that the client can want has come; many go then, and cancelling would
    cost the upstream's connection for nothing. `sending`: it is the client that is waited for, so nobody is silent.
    """

    __slots__ = (
        "_receive", "_watchman", "answered", "deadline", "ends", "expired", "gone", "listener", "sending", "since",
        "task",
    )  # fmt: skip

    def __init__(self, watchman: Watchman, receive: Receive) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task: asyncio.Task[Any] = task
        self.since = monotonic()
        self.ends = self.since + watchman.total_s
        self.deadline = _NEVER
        self.gone = self.answered = self.sending = False
        self.expired: Literal["silence", "total"] | None = None
        self.listener: asyncio.Task[None] | None = None
        self._receive = receive
        self._watchman = watchman

    def await_answer(self) -> None:
        """From now on counts the limit for the first byte."""
        self.deadline = monotonic() + self._watchman.first_byte_s

    def await_more(self) -> None:
        """From now on counts the limit between two pieces."""
        self.deadline = monotonic() + self._watchman.idle_s

    def go_on(self) -> None:
        """Takes back the cancelling: the call goes on, elsewhere."""
        self.task.uncancel()
        self.expired, self.deadline = None, _NEVER

    async def listen(self) -> None:
        """Waits for the client to go."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self.answered:
            return
        self.gone = True
        metrics.HANGUPS.inc()
        if self._watchman.abort:
            self.task.cancel()


class Watchman:
    """Looks every 50 ms: begins to listen to the clients of calls that last, cancels calls beyond their limit.

    `abort`: a client's going cancels its call, which closes the upstream's connection; otherwise the answer is
    read to its end for the record, and goes nowhere.
    """

    def __init__(self, first_byte_s: float, idle_s: float, total_s: float, abort: bool) -> None:
        self.first_byte_s = first_byte_s
        self.idle_s = idle_s
        self.total_s = total_s
        self.abort = abort
        self._watches: set[Watch] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._watches)

    def start(self) -> None:
        """Begins to look; needs a running event loop."""
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._look)

    def stop(self) -> None:
        """Ends looking."""
        if self._timer is not None:
            self._timer.cancel()

    def begin(self, receive: Receive) -> Watch:
        """Puts the running task under watch."""
        watch = Watch(self, receive)
        self._watches.add(watch)
        return watch

    def end(self, watch: Watch) -> None:
        """Takes it off again."""
        self._watches.discard(watch)
        if watch.listener is not None:
            watch.listener.cancel()

    def _look(self) -> None:
        now = monotonic()
        for watch in self._watches:
            if watch.listener is None and now - watch.since >= TICK_S:
                watch.listener = asyncio.create_task(watch.listen())
            if watch.sending:
                watch.deadline = now + self.idle_s
            if watch.expired is None and (now > watch.deadline or now > watch.ends):
                watch.expired = "total" if now > watch.ends else "silence"
                watch.task.cancel()
        self.start()
