"""Owns which paths belong to the data plane, and the slips in them that are tolerated. Pure functions."""

from __future__ import annotations

CHAT = "chat/completions"
MODELS = "models"
_EXACT = {"/v1/chat/completions": CHAT, "/v1/models": MODELS}
_WITHOUT_VERSION = ("completions", "responses", "embeddings", "moderations", "images", "audio", MODELS)
"""First words of the endpoints that are known, and so understood without `/v1` too."""
_WORDS = frozenset(
    (*_WITHOUT_VERSION, "input_items", "cancel", "compact", "input_tokens", "generations", "edits", "variations",
     "speech", "transcriptions", "translations")
)  # fmt: skip


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
    return endpoint if versioned or endpoint == CHAT or (parts and parts[0] in _WITHOUT_VERSION) else None


def is_known(endpoint: str) -> bool:
    """Whether calls of an endpoint other than chat's are recorded; others are relayed and not counted."""
    return endpoint.split("/", 1)[0] in _WITHOUT_VERSION


def name_of(endpoint: str) -> str:
    """An endpoint under one name for all its objects: responses/resp_1/cancel is responses.{id}.cancel."""
    return ".".join(word if word in _WORDS else "{id}" for word in endpoint.split("/"))
