"""Owns deleting calls with what only they used, by hand or because their time is over. Must not commit.

Money stays: the ledger is append-only. So do frozen dataset versions, which hold copies.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.capture import repository
from gateway.capture.blobs import Codec, digest_of
from gateway.capture.bodies import answer_of, items_of
from gateway.capture.requests import pointers
from gateway.models import Call

BATCH = 1_000
_PLAIN = Codec()


def delete_call(session: Session, project_id: UUID, call_id: UUID) -> bool:
    """Deletes one call of the project. Returns whether there was one."""
    repository.take_bodies(session, project_id)
    calls = repository.calls(session, project_id, [call_id])
    if not calls:
        return False
    (call,) = calls
    used = {item for item in items_of(session, call) if isinstance(item, bytes)}
    used |= set(pointers(call.request or {}).values())
    _delete(session, project_id, [call_id])
    repository.delete_unused_blobs(session, project_id, used)
    return True


def expire(session: Session, project_id: UUID, now: datetime) -> int:
    """Deletes some of the project's calls whose time is over, the oldest first; returns how many. Their bodies stay
    until `sweep`."""
    repository.take_bodies(session, project_id)
    ids = repository.expired(session, project_id, now, BATCH)
    _delete(session, project_id, ids)
    return len(ids)


def sweep(session: Session, project_id: UUID) -> None:
    """Deletes the project's bodies that no call uses any more."""
    repository.take_bodies(session, project_id)
    repository.delete_unused_blobs(session, project_id, None)


def _delete(session: Session, project_id: UUID, ids: Collection[UUID]) -> None:
    """Deletes calls, having given those that go on from them what they took from there."""
    for child in repository.children(session, project_id, ids):
        if child.id not in ids:
            _stand_alone(session, child)
    session.flush()
    repository.delete_calls(session, project_id, ids)


def _stand_alone(session: Session, call: Call) -> None:
    own = [item if isinstance(item, bytes) else _kept_answer(session, call, item) for item in items_of(session, call)]
    call.parent_id, call.shared, call.items = None, None, b"".join(own)


def _kept_answer(session: Session, call: Call, answered: UUID) -> bytes:
    """The answer of a call that goes, as a body of its own."""
    body = answer_of(session, call.project_id, answered)
    repository.insert_blobs(session, call.project_id, {digest_of(body): _PLAIN.compress(body)})
    return digest_of(body)
