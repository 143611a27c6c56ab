"""Owns the route of the gateway's own state."""

from __future__ import annotations

from fastapi import Request

from gateway.admin.edge import admin_router
from gateway.admin.schemas.health import Health

router = admin_router("health")


@router.get("/health")
def get_health(request: Request) -> Health:
    """Whether calls are answered, captured and stored, and what is wrong where they are not."""
    state: Health = request.app.state.health()
    return state
