"""Owns the side process with litellm: OpenAI's chat wire in, any provider's out.

Started as `python -m gateway.providers.translator`, its parent writes a key as the first line of stdin and reads the
port from stdout; when stdin ends, so does the process. Must listen on loopback only, and must take from a client's
body nothing but OpenAI's own fields: litellm would as readily take an address to send the credential to.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.core.errors import StepdownError

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

TAKEN = frozenset(
    {
        "messages", "functions", "function_call", "temperature", "top_p", "n", "stream", "stream_options", "stop",
        "max_tokens", "max_completion_tokens", "modalities", "prediction", "audio", "presence_penalty",
        "frequency_penalty", "logit_bias", "user", "response_format", "seed", "tools", "tool_choice",
        "parallel_tool_calls", "logprobs", "top_logprobs", "reasoning_effort", "verbosity", "safety_identifier",
        "service_tier", "prompt_cache_key", "thinking", "web_search_options",
    }
)  # fmt: skip
FOR_OPENAI_ALONE = frozenset({"model", "store", "metadata"})
"""About OpenAI's own storage, or given by the route: they have no meaning for another provider."""
PROVIDER_HEADER = "x-stepdown-provider"


class Told(msgspec.Struct):
    """What the gateway says about the provider, beside the body."""

    model: str
    base_url: str | None
    api_key: str
    timeout_s: float


def arguments(body: object, told: Told) -> dict[str, Any]:
    """What litellm is called with. Raises StepdownError (400) for a body that is no request or has unknown fields."""
    if not isinstance(body, dict):
        raise StepdownError(400, "malformed_json", "The request body is not a JSON object.", hint="Send one.")
    unknown = sorted(set(body) - TAKEN - FOR_OPENAI_ALONE)
    if unknown:
        raise StepdownError(
            400,
            "unknown_parameter",
            f"{unknown[0]!r} cannot be translated for {told.model}.",
            hint="Leave it out, or use an upstream that speaks OpenAI's wire.",
            param=unknown[0],
        )
    return {
        **{name: value for name, value in body.items() if name in TAKEN},
        "model": told.model,
        "base_url": told.base_url,
        "api_key": told.api_key or None,
        "timeout": told.timeout_s,
        "max_retries": 0,
    }


def make_app(key: str) -> Starlette:
    """The ASGI application; `key` is what the gateway must send."""

    async def chat(request: Request) -> Response:
        import litellm

        try:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), key.encode()):
                raise StepdownError(401, "translator_key", "Only the gateway may ask the translator.")
            call = arguments(_json(await request.body()), _told(request.headers.get(PROVIDER_HEADER, "")))
            answer = await litellm.acompletion(**call)
        except StepdownError as error:
            return JSONResponse(error.openai_body(), status_code=error.status)
        except Exception as error:  # litellm raises a class of its own for each provider's failure
            return failed(error)
        if call.get("stream"):
            return StreamingResponse(events(answer), media_type="text/event-stream")
        return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")

    return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])


def _json(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StepdownError(400, "malformed_json", f"The request body is not JSON: {error}.") from None


def _told(header: str) -> Told:
    try:
        return msgspec.json.decode(base64.b64decode(header), type=Told)
    except (binascii.Error, msgspec.MsgspecError) as error:
        raise StepdownError(400, "translator_header", f"{PROVIDER_HEADER} cannot be read: {error}.") from None


async def events(answer: Any) -> AsyncIterator[bytes]:
    """The chunks as server-sent events. A failure in the middle is an event of its own, and no [DONE] follows."""
    try:
        async for chunk in answer:
            yield (
                b"data: " + msgspec.json.encode(tidy(chunk.model_dump(exclude_none=True, exclude_unset=True))) + b"\n\n"
            )
    except Exception as error:  # as above; the stream has begun, so the error can only be its last event
        yield b"data: " + msgspec.json.encode(error_body(error)) + b"\n\n"
        return
    yield b"data: [DONE]\n\n"


def tidy(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk in OpenAI's form: the one that only brings usage has no choices."""
    choices = chunk.get("choices") or []
    says_nothing = all(not c.get("finish_reason") and not any((c.get("delta") or {}).values()) for c in choices)
    return {**chunk, "choices": []} if chunk.get("usage") and says_nothing else chunk


def failed(error: Exception) -> Response:
    """A provider's failure as OpenAI's wire tells it, with the headers that say when to try again."""
    status = getattr(error, "status_code", None)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    passed = {n: v for n, v in headers.items() if n.lower() in ("retry-after", "retry-after-ms", "x-request-id")}
    code = status if isinstance(status, int) and 400 <= status < 600 else 502
    return JSONResponse(error_body(error), status_code=code, headers=passed)


def error_body(error: Exception) -> dict[str, Any]:
    """The failure in OpenAI's error shape."""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    kind, code = getattr(error, "type", None), getattr(error, "code", None)
    return {
        "error": {
            "message": str(message),
            "type": str(kind or type(error).__name__),
            "param": getattr(error, "param", None),
            "code": code if isinstance(code, str) else None,
        }
    }


def _end_with_stdin(server: uvicorn.Server) -> None:
    sys.stdin.buffer.read()
    server.should_exit = True


def main() -> None:
    """Serves until stdin ends."""
    key = sys.stdin.buffer.readline().strip().decode()
    if not key:
        raise SystemExit("The translator is started by the gateway, which gives it a key.")
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(256)
    config = uvicorn.Config(make_app(key), access_log=False, log_level="warning", timeout_graceful_shutdown=30)
    server = uvicorn.Server(config)
    threading.Thread(target=_end_with_stdin, args=(server,), daemon=True).start()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
