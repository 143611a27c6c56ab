"""Owns the side process that runs litellm: starts it when a route needs it, restarts it, ends it.

Must not import litellm: the process that answers calls stays light.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import secrets
import sys

import msgspec

from gateway.core.errors import StepdownError
from gateway.providers.spec import UpstreamSpec
from gateway.proxy.headers import Headers
from gateway.routing.refresh import SnapshotHolder

log = logging.getLogger(__name__)
_LOOK_S = 0.5
_READY_S = 60.0


class TranslatorProcess:
    """`python -m gateway.providers.translator` as a child: it gets its key by stdin and ends with our end of it."""

    def __init__(self, snapshots: SnapshotHolder) -> None:
        self._snapshots = snapshots
        self._key = secrets.token_urlsafe(32)
        self._process: asyncio.subprocess.Process | None = None
        self._port: int | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to watch whether a route needs the process."""
        self._task = asyncio.create_task(self._keep(), name="translator")

    async def stop(self) -> None:
        """Ends the process and the watching."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    @property
    def wanted(self) -> bool:
        """Whether a route in force leads through the process."""
        return self._snapshots.current is not None and self._snapshots.current.needs_translator

    @property
    def ready(self) -> bool:
        """Whether it can be asked."""
        return self._port is not None

    @property
    def base_url(self) -> str:
        """See `gateway.proxy.upstream.Translator`."""
        if self._port is None:
            raise StepdownError(
                503, "translator_not_ready", "The process that translates for this provider is still starting.",
                hint="Try again in a few seconds.",
            )  # fmt: skip
        return f"http://127.0.0.1:{self._port}/v1"

    def headers(self, spec: UpstreamSpec, model: str) -> Headers:
        """See `gateway.proxy.upstream.Translator`."""
        told = {"model": model, "base_url": spec.base_url, "api_key": spec.api_key, "timeout_s": spec.timeout_s}
        return [
            (b"authorization", f"Bearer {self._key}".encode()),
            (b"x-stepdown-provider", base64.b64encode(msgspec.json.encode(told))),
        ]

    async def _keep(self) -> None:
        pause = _LOOK_S
        while True:
            if self.wanted:
                try:
                    await self._run()
                except (OSError, TimeoutError, ValueError) as error:
                    log.error("the translator could not be started: %s", error)
                pause = min(pause * 2, 30)
            await asyncio.sleep(pause if self.wanted else _LOOK_S)

    async def _run(self) -> None:
        """Starts the process, publishes its port, returns when it has ended."""
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway.providers.translator",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self._key.encode() + b"\n")
            async with asyncio.timeout(_READY_S):
                self._port = int(await process.stdout.readline())
            log.info("the translator listens on port %d", self._port)
            await process.wait()
            log.error("the translator ended with status %s", process.returncode)
        finally:
            self._port = None
            if process.returncode is None:
                process.terminate()
