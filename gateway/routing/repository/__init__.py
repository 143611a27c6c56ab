"""SQL of routing: changes of routes, and the state in force that the hot path reads."""

from gateway.routing.repository.changes import (
    add_revision,
    add_route,
    lock_route,
    ready_deployment,
    revisions,
    route_of,
    set_fallbacks,
    task_exists,
    upstream_exists,
)
from gateway.routing.repository.in_force import fetch_in_force, upstream_spec

__all__ = [
    "add_revision",
    "add_route",
    "fetch_in_force",
    "lock_route",
    "ready_deployment",
    "revisions",
    "route_of",
    "set_fallbacks",
    "task_exists",
    "upstream_exists",
    "upstream_spec",
]
