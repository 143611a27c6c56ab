"""Owns turning a spooled record into the rows that store it. Pure: no database, no prices."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gateway.capture import assemble
from gateway.capture.answer import Answer
from gateway.capture.blobs import BlobSet
from gateway.capture.record import Envelope, Record
from gateway.capture.requests import StoredRequest, answer_preview, question_preview, shortened, take_apart
from gateway.core import jsontext
from gateway.core.compression import decompress
from gateway.providers.spec import Usage
from gateway.providers.usage import usage_field, usage_of
from gateway.tasks.fingerprint import fingerprint, input_hash, system_text

_NOT_LEARNED = frozenset({"length", "content_filter", "error", "model_length", "max_tokens"})
"""Finish reasons of answers that are whole on the wire and yet not what a good answer is."""


@dataclass
class Parsed:
    """A call ready to be stored. `values` are its row; `usage` None where none was reported; `model` as answered.

    `items`: the hashes of what was asked. `answer`: the answer as JSON. `message`: the one message in it as JSON, which
    an app that goes on sends back.
    """

    envelope: Envelope
    values: dict[str, Any]
    blobs: BlobSet
    usage: Usage | None
    items: list[bytes] = field(default_factory=list)
    answer: bytes | None = None
    message: bytes | None = None
    model: str | None = None
    system: str = ""
    tools: list[str] = field(default_factory=list)


def parse(record: Record) -> Parsed:
    """Reads both bodies. What cannot be read is kept as text and never trainable."""
    envelope, blobs = record.envelope, BlobSet()
    values = _from_envelope(envelope)
    if envelope.capture != "full":
        usage = _told(envelope)
        values |= _tokens(usage) | {"complete": envelope.cut is None, "finish_reason": envelope.finish_reason}
        return Parsed(envelope, values, blobs, usage)
    request = take_apart(record.request, envelope.request_encoding, blobs, envelope.endpoint)
    answer = assemble.received(record.response, envelope.response_encoding, envelope.endpoint)
    response = answer.response or {}
    usage = usage_of(response) if usage_field(response) else None
    values |= _of_request(request) | _of_answer(envelope, answer, record) | _tokens(usage)
    values["trainable"] = values["trainable"] and request is not None
    chat = request.chat if request else {}
    model = response.get("model")
    model = model if isinstance(model, str) else None
    return Parsed(
        envelope, values, blobs, usage,
        items=request.items if request else [],
        answer=_stored_answer(answer, record) if record.response else None,
        message=message_of(answer.response, envelope.endpoint),
        model=model, system=system_text(chat), tools=_tool_names(chat),
    )  # fmt: skip


def _from_envelope(envelope: Envelope) -> dict[str, Any]:
    return {
        "id": envelope.id,
        "project_id": envelope.project_id,
        "key_id": envelope.key_id,
        "task_id": envelope.task_id,
        "received_at": datetime.fromtimestamp(envelope.received_ns / 1e9, UTC),
        "endpoint": envelope.endpoint,
        "alias": shortened(envelope.alias),
        "served_by": envelope.served_by,
        "upstream_id": envelope.upstream_id,
        "student_id": envelope.student_id,
        "route_revision_id": envelope.route_revision_id,
        "fallback_reason": envelope.fallback_reason,
        "streamed": envelope.streamed,
        "status": envelope.status,
        "complete": False,
        "trainable": False,
        "finish_reason": None,
        "error": shortened(envelope.error) if envelope.error else None,
        "latency_ms": envelope.latency_ns / 1e6,
        "ttfb_ms": envelope.ttfb_ns / 1e6 if envelope.ttfb_ns is not None else None,
        "overhead_ms": envelope.overhead_ns / 1e6,
        "cost": None,
        "fingerprint": None,
        "input_hash": None,
        "preview": "",
        "answer_preview": "",
        "tags": {},
        "request": None,
        "trajectory": jsontext.storable(envelope.trajectory) if envelope.trajectory else None,
        "parent_id": None,
        "shared": None,
        "items": None,
        "response": None,
    }


def _of_request(request: StoredRequest | None) -> dict[str, Any]:
    if request is None:
        return {}
    metadata = request.fields.get("metadata")
    return {
        "fingerprint": fingerprint(request.chat),
        "input_hash": input_hash(request.chat),
        "preview": question_preview(request.chat),
        "tags": metadata if isinstance(metadata, dict) and "$blob" not in metadata else {},
        "request": request.fields,
    }


def _of_answer(envelope: Envelope, answer: Answer, record: Record) -> dict[str, Any]:
    whole = answer.whole and envelope.cut is None and envelope.status == 200
    messages = [c.get("message") for c in answer.choices]
    reasons = {c["finish_reason"] for c in answer.choices if isinstance(c.get("finish_reason"), str)}
    values: dict[str, Any] = {
        "complete": whole or (envelope.cut is None and envelope.status != 200 and bool(record.response)),
        "trainable": whole and answer.finished and not reasons & _NOT_LEARNED and all(map(_says_something, messages)),
        "finish_reason": shortened(answer.finish_reason) if answer.finish_reason else None,
        "answer_preview": answer_preview(messages[0]) if messages and isinstance(messages[0], dict) else "",
    }
    if envelope.error is None and answer.error is not None:
        values["error"] = shortened(answer.error)
    return values


def message_of(response: dict[str, Any] | None, endpoint: str) -> bytes | None:
    """The message of a chat's answer as JSON, as it lies in the stored answer; None for several, or another dialect."""
    choices = (response or {}).get("choices")
    if endpoint != assemble.CHAT or not isinstance(choices, list) or len(choices) != 1:
        return None
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    return jsontext.encode(message) if isinstance(message, dict) else None


def _says_something(message: Any) -> bool:
    return isinstance(message, dict) and bool(
        message.get("content") or message.get("tool_calls") or message.get("function_call")
    )


def _stored_answer(answer: Answer, record: Record) -> bytes:
    if answer.response is not None:
        return jsontext.encode(answer.response)
    try:
        clear = decompress(record.response, record.envelope.response_encoding)
    except ValueError:
        clear = record.response
    return jsontext.encode({"unparsed": clear.decode(errors="replace")})


def _told(envelope: Envelope) -> Usage | None:
    told = envelope.usage or {}
    return Usage(**told) if any(told.values()) else None


def _tokens(usage: Usage | None) -> dict[str, int]:
    usage = usage or Usage()
    return {
        "prompt_tokens": usage.prompt,
        "cached_tokens": usage.cached,
        "completion_tokens": usage.completion,
        "reasoning_tokens": usage.reasoning,
    }


def _tool_names(body: Any) -> list[str]:
    tools = body.get("tools")
    functions = [t.get("function") for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    return [str(f.get("name")) for f in functions if isinstance(f, dict)]
