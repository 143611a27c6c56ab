"""Owns noticing that the client went away while its answer is awaited. Must cost a fast call next to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from gateway.core import metrics
from gateway.proxy.call import Call

LISTEN_AFTER_S = 0.05


class HangupWatch:
    """Listens for a disconnect once a call takes longer than 50 ms.

    Policy `abort`: the task that answers is cancelled, which closes the upstream's connection. `drain`: the
    answer is read to its end for the record, and goes nowhere.
    """

    def __init__(self, call: Call, receive: Callable[[], Awaitable[Any]], abort: bool) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering = task
        self._call = call
        self._receive = receive
        self._abort = abort
        self._listener: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(LISTEN_AFTER_S, self._start)

    def stop(self) -> None:
        """Ends listening."""
        self._timer.cancel()
        if self._listener is not None:
            self._listener.cancel()

    def _start(self) -> None:
        self._listener = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._call.gone = True
        metrics.HANGUPS.inc()
        if self._abort:
            self._answering.cancel()
