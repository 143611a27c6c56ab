"""Owns the admin API as one router, to be included in the gateway's app. Must hold no rule of its own."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from gateway.admin.edge import AdminRoute
from gateway.admin.guard import known_host
from gateway.admin.routers import calls, evaluations, health, projects, routes, runs, session, tasks, upstreams, usage
from gateway.core.errors import StepdownError

router = APIRouter(prefix="/api", dependencies=[Depends(known_host)])
for part in (session, health, projects, upstreams, calls, tasks, runs, evaluations, routes, usage):
    router.include_router(part.router)

_meta = APIRouter(route_class=AdminRoute)


@_meta.api_route("/{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
def unknown_path(path: str) -> None:
    """Keeps unknown paths of the API from being answered with the dashboard's page."""
    raise StepdownError(404, "path_unknown", f"There is no /api/{path}.", hint="See /api/openapi.json.")


router.include_router(_meta)
