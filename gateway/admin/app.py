"""Owns the control plane as one application: the admin API and the dashboard's files. Must hold no rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, JSONResponse, Response

from gateway.admin.router import router
from gateway.admin.schemas.health import Health
from gateway.core.errors import StepdownError

DASHBOARD = Path(__file__).parents[2] / "web" / "dist"
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


def control_plane(health: Callable[[], Health], stopping: Callable[[], bool]) -> FastAPI:
    """The application. `health` says how the data plane is, `stopping` whether what has no end should end now."""
    app = FastAPI(title="Stepdown", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.health, app.state.stopping = health, stopping
    app.include_router(router)
    app.add_api_route("/{path:path}", _dashboard, methods=["GET", "HEAD"], include_in_schema=False)
    return app


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
