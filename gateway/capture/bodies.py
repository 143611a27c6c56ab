"""Owns putting a stored call's request and response together again. Must not change what was captured.

What a call was asked is the first `shared` items of its parent's conversation (what that one was asked, then its
answer), then its own `items`.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.capture import repository
from gateway.capture.blobs import HASH_BYTES, decompress
from gateway.capture.dialects import dialect_of
from gateway.capture.dictionaries import codec_of
from gateway.capture.ingest import message_of
from gateway.capture.requests import pointers
from gateway.core import jsontext
from gateway.models import Call

Item = bytes | UUID
"""What was asked: the hash of a body, or the call whose answer it is."""


def load_request(session: Session, call: Call) -> dict[str, Any] | None:
    """The request body as the app sent it, items and all; None where bodies were not captured."""
    if call.request is None or call.items is None:
        return None
    items = items_of(session, call)
    large = pointers(call.request)
    found = repository.blobs(session, call.project_id, {*(i for i in items if isinstance(i, bytes)), *large.values()})
    codec = partial(codec_of, session, call.project_id)
    body = dict(call.request) | {name: jsontext.decode(decompress(found[h], codec)) for name, h in large.items()}
    if items:
        body[dialect_of(call.endpoint).items or "messages"] = [
            jsontext.decode(
                decompress(found[item], codec) if isinstance(item, bytes) else answer_of(session, call.project_id, item)
            )
            for item in items
        ]
    return body


def load_response(session: Session, call: Call) -> dict[str, Any] | None:
    """The response as its endpoint gives it without streaming; None where there is none.

    An answer that was no JSON is `{"unparsed": its text}`.
    """
    data = repository.response(session, call.project_id, call.id)
    return _response(session, call.project_id, data) if data is not None else None


def items_of(session: Session, call: Call) -> list[Item]:
    """What a call was asked, its ancestors' part included."""
    items: list[Item] = []
    for link in repository.ancestry(session, call.project_id, call.id):  # the oldest first
        if link.parent_id is not None:
            items = [*items, link.parent_id][: link.shared]
        own = link.items or b""
        items += [own[at : at + HASH_BYTES] for at in range(0, len(own), HASH_BYTES)]
    return items


def answer_of(session: Session, project_id: UUID, call_id: UUID) -> bytes:
    """The message that a call was answered, as its app sent it back. Raises LookupError where it is gone."""
    data = repository.response(session, project_id, call_id)
    message = message_of(_response(session, project_id, data), "chat.completions") if data is not None else None
    if message is None:
        raise LookupError(f"the answer of call {call_id} is not there")
    return message


def _response(session: Session, project_id: UUID, data: bytes) -> dict[str, Any]:
    response: dict[str, Any] = jsontext.decode(decompress(data, partial(codec_of, session, project_id)))
    return response
