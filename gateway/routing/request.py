"""Owns the policy's view of a request, decoded only as far as a route needs. Must not change the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.tasks import fingerprint as shape

_UNSET: Any = object()


class RequestView:
    """A request whose body and hashes are computed when first asked for, and once."""

    __slots__ = ("_body", "_fingerprint", "header_task", "metadata_task")

    def __init__(self, body: Mapping[str, Any] = _UNSET) -> None:
        self._body = body
        self._fingerprint: bytes | None = _UNSET
        self.header_task: str | None = None
        self.metadata_task: str | None = None

    @property
    def body(self) -> Mapping[str, Any]:
        """The decoded body."""
        if self._body is _UNSET:
            self._body = self._decode()
        return self._body

    @property
    def portable(self) -> bool:
        """Whether another provider could answer it as well as the first."""
        return True

    @property
    def task_slug(self) -> str | None:
        """The task as the app named it: by header, else in the metadata."""
        return self.header_task or self.metadata_task

    @property
    def fingerprint(self) -> bytes | None:
        """See `gateway.tasks.fingerprint.fingerprint`."""
        if self._fingerprint is _UNSET:
            self._fingerprint = shape.fingerprint(self.body)
        return self._fingerprint

    @property
    def conversation(self) -> bytes:
        """See `gateway.tasks.fingerprint.conversation_hash`."""
        return shape.conversation_hash(self.body)

    def _decode(self) -> Mapping[str, Any]:
        raise NotImplementedError
