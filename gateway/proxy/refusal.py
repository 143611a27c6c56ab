"""Owns how our own refusals are told, in the dialect that the client speaks. Must not decide them."""

from __future__ import annotations

import msgspec

from gateway.core.errors import StepdownError
from gateway.proxy.paths import MESSAGES

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
