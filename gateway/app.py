"""Owns putting the gateway together and serving it: data plane, probes, control plane. Must hold no rules."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gateway.admin.health import health
from gateway.admin.schemas.health import Health
from gateway.capture import status
from gateway.capture.spool import Spool
from gateway.core import metrics
from gateway.core.db import dispose_async
from gateway.core.errors import StepdownError
from gateway.core.logs import write_logs
from gateway.core.ports import holder
from gateway.core.settings import settings
from gateway.core.workers import EVERY_S, Worker, own_number
from gateway.proxy.answer import send_whole
from gateway.proxy.client import UpstreamClient
from gateway.proxy.paths import endpoint_of, passed_through
from gateway.proxy.relay import Relay
from gateway.proxy.server import Protocol
from gateway.proxy.translator import TranslatorProcess
from gateway.proxy.upstream import Upstreams
from gateway.routing.refresh import SnapshotHolder

Probed = tuple[int, bytes, bytes]
"""Status, content type, body."""


class Gateway:
    """The data plane, the probes, and behind them the control plane, whose requests alone meet FastAPI.

    Calls are answered as soon as the data plane stands: the control plane, twice as much code, is loaded beside it.
    """

    def __init__(self, loaded: Callable[[], object] = lambda: None) -> None:
        chosen = settings()
        self.snapshots = SnapshotHolder(chosen.route_refresh_s)
        self.spool = Spool(chosen.spool_dir)
        self.translator = TranslatorProcess(self.snapshots)
        self._client = UpstreamClient(chosen.connect_timeout_s, chosen.upstream_connections)
        upstreams = Upstreams(self._client, self.translator)
        self._relay = Relay(chosen, self.snapshots, self.spool, self._client, upstreams)
        number = own_number()
        self.worker = Worker(chosen.run_dir, number) if number is not None else None
        self._telling: asyncio.Task[None] | None = None
        self._control: asyncio.Task[Any] | None = None
        self._loaded = loaded
        self.stopping = False
        self._probes = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics}
        metrics.SPOOL_WAITING.set_function(_waiting)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Sends /v1 to the relay, everything else but the probes to the control plane."""
        # The path as sent: an id in it may hold an encoded slash.
        endpoint, token = None, ""
        if scope["type"] == "http":
            token, path = passed_through(scope["raw_path"].decode("latin-1"))
            endpoint = endpoint_of(path)
            if token:
                endpoint = endpoint or path.strip("/")
                scope["path"] = path
        if endpoint is not None:
            await self._relay(scope, endpoint, token, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"] in self._probes and scope["method"] in ("GET", "HEAD"):
            status, kind, body = self._probes[scope["path"]]()
            await send_whole(send, status, [(b"content-type", kind)], body)
        else:
            control = await asyncio.shield(self.control())
            await control(scope, receive, send)

    def control(self) -> asyncio.Task[Any]:
        """The control plane, loaded in a thread of its own: calls go on meanwhile."""
        if self._control is None:
            self._control = asyncio.create_task(asyncio.to_thread(self._load), name="control-plane")
        return self._control

    def _load(self) -> Any:
        from gateway.admin.app import control_plane

        control = control_plane(self.health, lambda: self.stopping)
        self._loaded()
        return control

    def health(self) -> Health:
        """What the gateway says of its own state."""
        return health(self.snapshots, self.translator, self.spool, self._relay.upstreams_resting)

    async def open(self) -> None:
        """Starts what works in the background."""
        self.spool.start()
        self._client.start()
        self._relay.watchman.start()
        await self.snapshots.start()
        self.translator.start()
        if self.worker is not None:
            self._telling = asyncio.create_task(self._tell(self.worker), name="worker-note")
        self.control()

    async def shut(self) -> None:
        """Ends it, the spool last."""
        if self.worker is not None and self._telling is not None:
            self._telling.cancel()
            self.worker.tell(ready=False)
        await asyncio.wait([self.control()])
        await self.translator.stop()
        await self.snapshots.stop()
        self._relay.watchman.stop()
        await self._client.close()
        self.spool.close()
        await dispose_async()

    async def _tell(self, worker: Worker) -> None:
        while True:
            worker.tell(self.health().ready)
            await asyncio.sleep(EVERY_S)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.shut()
        await send({"type": "lifespan.shutdown.complete"})

    def _healthz(self) -> Probed:
        return 200, b"text/plain; charset=utf-8", b"ok\n"

    def _readyz(self) -> Probed:
        state = self.health()
        return 200 if state.ready else 503, b"application/json", state.model_dump_json().encode()

    def _metrics(self) -> Probed:
        text = self.worker.exposition(settings().workers) if self.worker is not None else generate_latest()
        return 200, CONTENT_TYPE_LATEST.encode(), text


def create_app() -> Gateway:
    """The whole gateway as an ASGI application."""
    return Gateway()


def _waiting() -> float:
    note = status.read(settings().spool_dir)
    return note.waiting_bytes if note else math.nan


def listen(host: str, port: int, shared: bool = False) -> socket.socket:
    """The listening socket, `shared` with other processes of ours. Raises StepdownError saying who holds the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise StepdownError(
            503,
            "port_taken",
            f"The gateway cannot listen on {host}:{port}: {error.strerror} (held by {holder(port)}).",
            hint="Stop that program, or choose another port with STEPDOWN_PORT.",
        ) from error
    listener.set_inheritable(False)
    return listener


class _NoCutLines(logging.Filter):
    """An answer that its upstream cut is cut for the client too, and logged by the relay: once is enough."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "without completing response" not in record.getMessage()


class _Server(uvicorn.Server):
    """Tells the gateway that it stops, before waiting for what is open: a dashboard's stream never ends by itself."""

    def __init__(self, config: uvicorn.Config, app: Gateway) -> None:
        super().__init__(config)
        self._gateway = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gateway.stopping = True
        await super().shutdown(sockets)


def serve(host: str, port: int) -> None:
    """Runs the gateway until SIGTERM or Ctrl-C. Raises StepdownError when it cannot listen."""
    write_logs()
    # Before uvicorn listens to signals, and when it repeats the one that ended it, once all is done.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    listener = listen(host, port, shared=own_number() is not None)
    logging.getLogger("uvicorn.error").addFilter(_NoCutLines())
    # What is loaded stays: the collector need not walk it again while calls wait.
    app = Gateway(loaded=gc.freeze)
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=Protocol,
        ws="none",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        log_config=None,
        log_level=settings().log_level,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings().grace_s,
    )
    _Server(config, app).run(sockets=[listener])


if __name__ == "__main__":
    serve(settings().host, settings().port)
