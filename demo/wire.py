"""OpenAI's chat wire as the scripted teacher speaks it: checked requests in, bodies, chunks and errors out.

Owns shapes only, no answers and no sockets. Everything that a client may show names the stand-in as one.
"""

import json
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MODEL = "frontier-large"
SNAPSHOT = "frontier-large-stand-in"
OWNER = "stepdown-demo-stand-in"
FINGERPRINT = "fp_scripted_stand_in"

_TOKEN = re.compile(r"\w{1,6}|[^\w\s]|\s+(?=\s)")
_ROLES = {"system", "developer", "user", "assistant", "tool", "function"}


class WireError(Exception):
    """A request that is refused: HTTP status and OpenAI's error object."""

    def __init__(self, status: int, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True)
class ChatRequest:
    """The parts of a chat request that the stand-in heeds; it takes any other as it comes."""

    model: str
    messages: list[dict[str, Any]]
    stream: bool = False
    include_usage: bool = False
    n: int = 1
    max_tokens: int | None = None
    stop: list[str] = field(default_factory=list)
    response_format: dict[str, Any] | None = None


def parse(body: bytes) -> ChatRequest:
    """The request, or WireError 400 (malformed, incomplete) or 404 (another model)."""
    try:
        data = json.loads(body)
    except ValueError as error:
        raise WireError(400, f"The request body is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise WireError(400, "The request body must be a JSON object.")
    for name in ("model", "messages"):
        if name not in data:
            raise WireError(
                400, f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name
            )
    if data["model"] not in (MODEL, SNAPSHOT):
        raise WireError(
            404, f"The model `{data['model']}` does not exist here; this stand-in serves `{MODEL}`.",
            code="model_not_found", param="model",
        )  # fmt: skip
    limit = data.get("max_completion_tokens") or data.get("max_tokens")
    stop = data.get("stop") or []
    return ChatRequest(
        model=data["model"],
        messages=_messages(data["messages"]),
        stream=_typed(data, "stream", bool, False),
        include_usage=bool((data.get("stream_options") or {}).get("include_usage")),
        n=_typed(data, "n", int, 1),
        max_tokens=limit,
        stop=[stop] if isinstance(stop, str) else list(stop),
        response_format=_typed(data, "response_format", dict, None),
    )


def _messages(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise WireError(400, "'messages' must be a list of at least one message.", param="messages")
    for i, message in enumerate(value):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise WireError(
                400, f"'messages[{i}]' must be an object with a role, one of {', '.join(sorted(_ROLES))}.",
                code="invalid_value", param=f"messages[{i}].role",
            )  # fmt: skip
    return value


def _typed(data: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = data.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise WireError(
            400, f"'{name}' must be of type {kind.__name__}, got {value!r}.", code="invalid_type", param=name
        )
    return value


def tokens(text: str) -> list[str]:
    """The text in pieces of about a token each, spaces kept with the piece that follows."""
    ends = [match.end() for match in _TOKEN.finditer(text)]
    starts = [0, *ends[:-1]]
    pieces = [text[a:b] for a, b in zip(starts, ends, strict=True)]
    rest = text[ends[-1] :] if ends else text
    return [*pieces, rest] if rest else pieces


def cut(text: str, request: ChatRequest) -> tuple[str, str]:
    """The text up to a stop sequence or the token limit, and the finish reason."""
    for stop in request.stop:
        text = text.split(stop, 1)[0]
    pieces = tokens(text)
    if request.max_tokens is not None and len(pieces) > request.max_tokens:
        return "".join(pieces[: request.max_tokens]), "length"
    return text, "stop"


def usage(request: ChatRequest, text: str) -> dict[str, Any]:
    """Token counts by the rule of `tokens`; nothing is cached and nothing is reasoned."""
    contents = [m.get("content") for m in request.messages]
    prompt = sum(4 + len(tokens(c if isinstance(c, str) else json.dumps(c))) for c in contents) + 3
    completion = len(tokens(text)) * request.n
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _head(kind: str, request_id: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request_id}",
        "object": kind,
        "created": int(time.time()),
        "model": SNAPSHOT,
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
    }


def new_id() -> str:
    return secrets.token_hex(14)


def completion(request: ChatRequest, text: str, request_id: str) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    text, reason = cut(text, request)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    choices = [{"index": i, "message": message, "logprobs": None, "finish_reason": reason} for i in range(request.n)]
    return {**_head("chat.completion", request_id), "choices": choices, "usage": usage(request, text)}


def chunks(request: ChatRequest, text: str, request_id: str) -> Iterator[bytes]:
    """The events of a streamed answer, one per token and choice, `[DONE]` last."""
    text, reason = cut(text, request)
    head = _head("chat.completion.chunk", request_id)
    pad = {"usage": None} if request.include_usage else {}

    def event(index: int, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head, "choices": [choice], **pad})

    each = range(request.n)
    yield b"".join(event(i, {"role": "assistant", "content": "", "refusal": None}) for i in each)
    for piece in tokens(text):
        yield b"".join(event(i, {"content": piece}) for i in each)
    yield b"".join(event(i, {}, reason) for i in each)
    if request.include_usage:
        yield _event({**head, "choices": [], "usage": usage(request, text)})
    yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1767225600, "owned_by": OWNER}
