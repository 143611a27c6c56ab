"""Owns putting a stored call's request and response together again. Must not change what was captured."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from gateway.capture import repository
from gateway.capture.blobs import decompress
from gateway.capture.dialects import dialect_of
from gateway.capture.requests import pointers
from gateway.core import jsontext
from gateway.models import Call


def load_request(session: Session, call: Call) -> dict[str, Any] | None:
    """The request body as the app sent it, messages and all; None where bodies were not captured."""
    if call.request is None or call.message_hashes is None:
        return None
    hashes = [bytes.fromhex(h) for h in call.message_hashes]
    large = pointers(call.request)
    found = repository.blobs(session, call.project_id, {*hashes, *large.values()})
    body = dict(call.request) | {name: jsontext.decode(decompress(found[h])) for name, h in large.items()}
    if hashes:
        body[dialect_of(call.endpoint).items or "messages"] = [jsontext.decode(decompress(found[h])) for h in hashes]
    return body


def load_response(session: Session, call: Call) -> dict[str, Any] | None:
    """The response as its endpoint gives it without streaming; None where there is none.

    An answer that was no JSON is `{"unparsed": its text}`.
    """
    if call.response_hash is None:
        return None
    found = repository.blobs(session, call.project_id, {call.response_hash})
    response: dict[str, Any] = jsontext.decode(decompress(found[call.response_hash]))
    return response
