"""Owns making and revoking gateway keys. Must not commit, and must not keep or log a key in clear."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.errors import StepdownError, not_found
from gateway.core.ids import hash_key, new_api_key
from gateway.keys import repository
from gateway.models import ApiKey

SHOWN = 8
CAPTURE_MODES = ("full", "metadata", "off")


def create_key(
    session: Session, project_id: UUID, name: str, capture: str = "full", max_concurrent: int | None = None
) -> tuple[ApiKey, str]:
    """A new key: its row, and the key itself, which cannot be read again. Raises StepdownError 404, 422.

    `max_concurrent`: calls that it may have under way at once in each gateway process; None: any number.
    """
    if capture not in CAPTURE_MODES:
        raise StepdownError(
            422,
            "capture_mode",
            f"A key cannot capture {capture!r}.",
            hint=f"Choose from {', '.join(CAPTURE_MODES)}.",
            param="capture",
        )
    if not repository.project_exists(session, project_id):
        raise not_found("project", project_id)
    key = new_api_key()
    row = ApiKey(
        project_id=project_id, name=name, prefix=key[:SHOWN], hash=hash_key(key), capture=capture,
        max_concurrent=max_concurrent,
    )  # fmt: skip
    repository.add(session, row)
    return row, key


def change_key(session: Session, project_id: UUID, key_id: UUID, **fields: Any) -> ApiKey:
    """Sets `fields` of the key, by their names in its row. Raises StepdownError 404."""
    row = _get(session, project_id, key_id)
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def revoke_key(session: Session, project_id: UUID, key_id: UUID) -> ApiKey:
    """Refuses the key from now on; revoking twice changes nothing. Raises StepdownError 404."""
    row = _get(session, project_id, key_id)
    row.revoked_at = row.revoked_at or now()
    return row


def _get(session: Session, project_id: UUID, key_id: UUID) -> ApiKey:
    row = repository.get(session, project_id, key_id)
    if row is None:
        raise not_found("key", key_id)
    return row
