"""Owns making and revoking gateway keys. Must not commit, and must not keep or log a key in clear."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.errors import StepdownError, not_found
from gateway.core.ids import hash_key, new_api_key
from gateway.keys import repository
from gateway.models import ApiKey

SHOWN = 8
CAPTURE_MODES = ("full", "metadata", "off")


def create_key(session: Session, project_id: UUID, name: str, capture: str = "full") -> tuple[ApiKey, str]:
    """A new key: its row, and the key itself, which cannot be read again. Raises StepdownError 404, 422."""
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
    row = ApiKey(project_id=project_id, name=name, prefix=key[:SHOWN], hash=hash_key(key), capture=capture)
    repository.add(session, row)
    return row, key


def revoke_key(session: Session, project_id: UUID, key_id: UUID) -> ApiKey:
    """Refuses the key from now on; revoking twice changes nothing. Raises StepdownError 404."""
    row = repository.get(session, project_id, key_id)
    if row is None:
        raise not_found("key", key_id)
    row.revoked_at = row.revoked_at or now()
    return row
