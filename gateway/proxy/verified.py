"""Owns remembering which providers' keys their own provider has taken: until then a caller may be anybody.

Keeps salted hashes in memory, for a while and not too many. Must never hold a key in clear.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from uuid import UUID

from gateway.proxy.headers import Headers

FOR_S = 600.0
MOST = 10_000


class Verified:
    """Keys that an upstream answered with success, by upstream."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._salt = secrets.token_bytes(32)
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def knows(self, upstream_id: UUID, credentials: Headers) -> bool:
        """Whether the upstream took these credentials in the last ten minutes."""
        return self._until.get(self._hash(upstream_id, credentials), 0.0) > self._clock()

    def remember(self, upstream_id: UUID, credentials: Headers) -> None:
        """The upstream took them just now."""
        key = self._hash(upstream_id, credentials)
        self._until[key] = self._clock() + FOR_S
        self._until.move_to_end(key)
        while len(self._until) > MOST:
            self._until.popitem(last=False)

    def _hash(self, upstream_id: UUID, credentials: Headers) -> bytes:
        digest = hashlib.blake2b(upstream_id.bytes, key=self._salt, digest_size=16)
        for name, value in credentials:
            digest.update(b"%b:%d:%b" % (name, len(value), value))
        return digest.digest()
