"""Owns the list of model names that a project's apps may ask for. Must not tell who answers them."""

from __future__ import annotations

from typing import Any

from gateway.proxy.paths import MODELS
from gateway.routing.policy import ANY, unknown_model
from gateway.routing.snapshot import ProjectInForce


def models_answer(project: ProjectInForce, endpoint: str) -> dict[str, Any] | None:
    """One of the project's names, for `GET /v1/models/{name}`.

    None for any other name where a route answers every name: its upstream knows. Raises StepdownError (404) otherwise.
    """
    name = endpoint[len(MODELS) + 1 :]
    if name in project.aliases:
        return _model(name)
    if (ANY, None) in project.routes:
        return None
    raise unknown_model(project, name)


def models_list(project: ProjectInForce, upstreams: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer to `GET /v1/models`: the project's own names, then what the catch-all's upstream lists beside them."""
    own = project.aliases
    others = [model for model in upstreams if model.get("id") not in own]
    return {"object": "list", "data": [*map(_model, own), *others]}


def _model(alias: str) -> dict[str, Any]:
    return {"id": alias, "object": "model", "created": 0, "owned_by": "stepdown"}
