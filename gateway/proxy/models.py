"""Owns the list of model names that a project's apps may ask for. Must not tell who answers them."""

from __future__ import annotations

from typing import Any

from gateway.proxy.paths import MODELS
from gateway.routing.policy import unknown_model
from gateway.routing.snapshot import ProjectInForce


def models_answer(project: ProjectInForce, endpoint: str) -> dict[str, Any]:
    """`GET /v1/models`, or one of them under `/v1/models/{name}`. Raises StepdownError (404) for an unknown name."""
    name = endpoint[len(MODELS) :].strip("/")
    if not name:
        return {"object": "list", "data": [_model(alias) for alias in project.aliases]}
    if name not in project.aliases:
        raise unknown_model(project, name)
    return _model(name)


def _model(alias: str) -> dict[str, Any]:
    return {"id": alias, "object": "model", "created": 0, "owned_by": "stepdown"}
