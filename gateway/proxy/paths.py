"""Owns which paths belong to the data plane, and the slips in them that are tolerated. Pure functions."""

from __future__ import annotations

from urllib.parse import unquote

CHAT = "chat/completions"
COMPLETIONS = "completions"
RESPONSES = "responses"
MESSAGES = "messages"
MODELS = "models"
_EXACT = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES, "/v1/models": MODELS}
_WITHOUT_VERSION = (COMPLETIONS, RESPONSES, MESSAGES, "embeddings", "moderations", "images", "audio", MODELS)
"""First words of the endpoints that are known, and so understood without `/v1` too."""
_WORDS = frozenset(
    (*_WITHOUT_VERSION, "input_items", "cancel", "compact", "input_tokens", "generations", "edits", "variations",
     "speech", "transcriptions", "translations", "count_tokens")
)  # fmt: skip
_UNRECORDED = f"{MESSAGES}/batches"
_ENTRANCE = "/p/sd"
_DEPLOYMENTS = "/openai/deployments/"


def endpoint_of(path: str) -> str | None:
    """The endpoint that a path means: `/v1` may be doubled or missing, slashes doubled or trailing.

    Azure's paths (`/openai/v1/…`, `/openai/deployments/{name}/…`) mean the same endpoints. None for a path outside the
    data plane.
    """
    exact = _EXACT.get(path)
    if exact is not None:
        return exact
    parts = [part for part in path.split("/") if part]
    azure = parts[:1] == ["openai"]
    if azure:
        parts = parts[3:] if parts[1:2] == ["deployments"] else parts[1:]
    versioned = azure or parts[:1] == ["v1"]
    while parts[:1] == ["v1"]:
        parts = parts[1:]
    endpoint = "/".join(parts)
    return endpoint if versioned or endpoint == CHAT or (parts and parts[0] in _WITHOUT_VERSION) else None


def passed_through(path: str) -> tuple[str, str]:
    """The pass-through token that a path begins with, and the rest of the path; "" for a path without one.

    The dashboard's pages begin with /p/ too, and a project's id.
    """
    if not path.startswith(_ENTRANCE):
        return "", path
    token, _, rest = path.removeprefix("/p/").partition("/")
    return token, f"/{rest}"


def deployment_of(path: str) -> str:
    """The deployment that an Azure path names; "" for any other path."""
    return unquote(path[len(_DEPLOYMENTS) :].partition("/")[0]) if path.startswith(_DEPLOYMENTS) else ""


def is_known(endpoint: str) -> bool:
    """Whether calls of an endpoint other than chat's are recorded; others are relayed and not counted."""
    return endpoint.split("/", 1)[0] in _WITHOUT_VERSION and not endpoint.startswith(_UNRECORDED)


def name_of(endpoint: str) -> str:
    """An endpoint under one name for all its objects: responses/resp_1/cancel is responses.{id}.cancel."""
    return ".".join(word if word in _WORDS else "{id}" for word in endpoint.split("/"))
