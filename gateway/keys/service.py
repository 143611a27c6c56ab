"""Owns making and revoking gateway keys. Must not commit, and must not keep or log a key in clear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.capture.redaction import Redactor, Rule
from gateway.core.clock import now
from gateway.core.errors import StepdownError, not_found
from gateway.core.ids import hash_key, new_api_key
from gateway.keys import repository
from gateway.models import ApiKey

SHOWN = 8
CAPTURE_MODES = ("full", "metadata", "off")


def create_key(
    session: Session,
    project_id: UUID,
    name: str,
    capture: str = "full",
    max_concurrent: int | None = None,
    *,
    upstream_id: UUID | None = None,
    sample: float = 1.0,
    redact: Sequence[Rule] = (),
    retention_days: int | None = None,
) -> tuple[ApiKey, str]:
    """A new key: its row, and the key itself, which cannot be read again. Raises StepdownError 404, 422.

    `max_concurrent`: calls that it may have under way at once in each gateway process; None: any number.
    `upstream_id`: it is a pass-through token to this upstream. `sample`: the share of conversations that are captured
    in full. `redact`: see `gateway.capture.redaction.Rule`.
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
    Redactor(redact)
    if upstream_id is not None:
        _check_upstream(session, project_id, upstream_id)
    key = new_api_key("sdp-" if upstream_id else "sd-")
    row = ApiKey(
        project_id=project_id, name=name, prefix=key[:SHOWN], hash=hash_key(key), capture=capture,
        max_concurrent=max_concurrent, upstream_id=upstream_id, sample=sample, redact=list(redact),
        retention_days=retention_days,
    )  # fmt: skip
    repository.add(session, row)
    return row, key


def change_key(session: Session, project_id: UUID, key_id: UUID, **fields: Any) -> ApiKey:
    """Sets `fields` of the key, by their names in its row. Raises StepdownError 404."""
    row = _get(session, project_id, key_id)
    Redactor(fields.get("redact") or ())
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def revoke_key(session: Session, project_id: UUID, key_id: UUID) -> ApiKey:
    """Refuses the key from now on; revoking twice changes nothing. Raises StepdownError 404."""
    row = _get(session, project_id, key_id)
    row.revoked_at = row.revoked_at or now()
    return row


def _check_upstream(session: Session, project_id: UUID, upstream_id: UUID) -> None:
    kind = repository.upstream_kind(session, project_id, upstream_id)
    if kind is None:
        raise not_found("upstream", upstream_id)
    if kind == "litellm":
        raise StepdownError(
            422,
            "pass_through_translated",
            f"Upstream {upstream_id} is translated for: callers have no key that could be passed through to it.",
            hint="Choose an upstream of another kind.",
            param="upstream_id",
        )


def _get(session: Session, project_id: UUID, key_id: UUID) -> ApiKey:
    row = repository.get(session, project_id, key_id)
    if row is None:
        raise not_found("key", key_id)
    return row
