"""Owns how our own refusals are told, in the dialect that the client speaks. Must not decide them."""

from __future__ import annotations

import logging

import msgspec

from gateway.core import metrics
from gateway.core.errors import StepdownError
from gateway.core.ids import new_id
from gateway.proxy.headers import Headers
from gateway.proxy.paths import MESSAGES

log = logging.getLogger(__name__)
JSON = (b"content-type", b"application/json")

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""Anthropic's `error.type` by status."""


def error_body(endpoint: str, error: StepdownError) -> bytes:
    """The error as the endpoint's clients parse it: in Anthropic's shape for Messages, else in OpenAI's."""
    if endpoint.split("/", 1)[0] != MESSAGES:
        return msgspec.json.encode(error.openai_body())
    kind = _ANTHROPIC.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": str(error), "code": error.code}})


def request_id() -> tuple[bytes, bytes]:
    """The header that names an answer of ours which belongs to no call."""
    return (b"x-stepdown-request-id", str(new_id()).encode())


def turned_away(endpoint: str, error: StepdownError) -> tuple[Headers, bytes]:
    """Headers and body for a request that never became a call; it is counted, and named in the log."""
    name, id = request_id()
    metrics.REFUSED.labels(error.code).inc()
    log.warning(
        "request %s: %d %s at /v1/%s", id.decode(), error.status, error.code, endpoint[:100],
        extra={"call_id": id.decode()},
    )  # fmt: skip
    headers: Headers = [JSON, (name, id)]
    if error.status == 429:
        headers.append((b"retry-after", b"1"))
    return headers, error_body(endpoint, error)
