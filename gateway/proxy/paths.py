"""Owns which paths belong to the data plane, and the slips in them that are tolerated. Pure functions."""

from __future__ import annotations

CHAT = "chat/completions"
MODELS = "models"
_EXACT = {"/v1/chat/completions": CHAT, "/v1/models": MODELS}


def endpoint_of(path: str) -> str | None:
    """The endpoint that a path means: `/v1` may be doubled or missing, slashes doubled or trailing.

    None for a path outside the data plane.
    """
    exact = _EXACT.get(path)
    if exact is not None:
        return exact
    parts = [part for part in path.split("/") if part]
    versioned = parts[:1] == ["v1"]
    while parts[:1] == ["v1"]:
        parts = parts[1:]
    endpoint = "/".join(parts)
    return endpoint if versioned or endpoint == CHAT else None
