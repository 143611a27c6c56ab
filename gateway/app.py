"""Owns putting the gateway together: data plane, admin API, dashboard, health, metrics. Must hold no rules."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gateway.admin.health import health
from gateway.admin.router import router
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
from gateway.proxy.client import UpstreamClient
from gateway.proxy.paths import endpoint_of, passed_through
from gateway.proxy.relay import Relay
from gateway.proxy.server import Protocol
from gateway.proxy.translator import TranslatorProcess
from gateway.proxy.upstream import Upstreams
from gateway.routing.refresh import SnapshotHolder

DASHBOARD = Path(__file__).parents[1] / "web" / "dist"
_PAGE_HEADERS = {
    "cache-control": "no-cache",
    # Only our own files run in the page, and no other site may show it in a frame.
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}
# Built files carry a hash of their content in their name.
_ASSET_HEADERS = {"cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff"}


class Gateway(FastAPI):
    """FastAPI for the control plane, with the data plane before it: its requests never meet a middleware."""

    def __init__(self, **options: Any) -> None:
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
        super().__init__(lifespan=_lifespan, **options)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Sends /v1 to the relay, everything else to FastAPI."""
        # The path as sent: an id in it may hold an encoded slash.
        endpoint, token = None, ""
        if scope["type"] == "http":
            token, path = passed_through(scope["raw_path"].decode("latin-1"))
            endpoint = endpoint_of(path)
            if token:
                endpoint = endpoint or path.strip("/")
                scope["path"] = path
        if endpoint is None:
            await super().__call__(scope, receive, send)
        else:
            await self._relay(scope, endpoint, token, receive, send)

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

    async def shut(self) -> None:
        """Ends it, the spool last."""
        if self.worker is not None and self._telling is not None:
            self._telling.cancel()
            self.worker.tell(ready=False)
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


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    assert isinstance(app, Gateway)
    await app.open()
    try:
        yield
    finally:
        await app.shut()


def create_app() -> Gateway:
    """The whole gateway as an ASGI application."""
    app = Gateway(title="Stepdown", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.add_api_route("/healthz", _healthz, include_in_schema=False)
    app.add_api_route("/readyz", partial(_readyz, app), include_in_schema=False)
    app.add_api_route("/metrics", partial(_metrics, app), include_in_schema=False)
    app.include_router(router)
    metrics.SPOOL_WAITING.set_function(_waiting)
    app.add_api_route("/{path:path}", _dashboard, methods=["GET", "HEAD"], include_in_schema=False)
    return app


async def _healthz() -> Response:
    return PlainTextResponse("ok\n")


async def _metrics(app: Gateway) -> Response:
    text = app.worker.exposition(settings().workers) if app.worker is not None else generate_latest()
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _waiting() -> float:
    note = status.read(settings().spool_dir)
    return note.waiting_bytes if note else math.nan


async def _readyz(app: Gateway) -> Response:
    state = app.health()
    return JSONResponse(state.model_dump(mode="json"), status_code=200 if state.ready else 503)


async def _dashboard(path: str) -> Response:
    """A file of the built dashboard; its start page for any other address, where its own router takes over."""
    root = DASHBOARD.resolve()
    file = (root / path).resolve()
    if path and file.is_relative_to(root) and file.is_file():
        return FileResponse(file, headers=_ASSET_HEADERS if path.startswith("assets/") else _PAGE_HEADERS)
    if (root / "index.html").is_file() and not path.startswith("api/"):
        return FileResponse(root / "index.html", headers=_PAGE_HEADERS)
    error = StepdownError(404, "not_found", f"There is nothing at /{path}.", hint="`make web` builds the dashboard.")
    return JSONResponse(error.openai_body(), status_code=404)


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


def serve(host: str, port: int) -> None:
    """Runs the gateway until SIGTERM or Ctrl-C. Raises StepdownError when it cannot listen."""
    write_logs()
    # Before uvicorn listens to signals, and when it repeats the one that ended it, once all is done.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    listener = listen(host, port, shared=own_number() is not None)
    logging.getLogger("uvicorn.error").addFilter(_NoCutLines())
    app = create_app()
    # What was loaded by now stays: the collector need not walk it again while calls wait.
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
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    serve(settings().host, settings().port)
