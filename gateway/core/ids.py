"""Owns identifiers: time-ordered UUIDv7 for rows, secret tokens for keys. Must not read the database."""

import hashlib
import secrets
import uuid

import uuid_utils


def new_id() -> uuid.UUID:
    """A UUIDv7 (RFC 9562, section 5.7): sorts by creation time, so the newest rows lie together."""
    return uuid.UUID(int=uuid_utils.uuid7().int)


def new_api_key(prefix: str = "sd-") -> str:
    """A gateway key: `sd-` and 256 random bits; a pass-through token begins with `sdp-`."""
    return prefix + secrets.token_urlsafe(32)


def hash_key(key: str) -> bytes:
    """SHA-256 of a key. Keys carry 256 random bits, so a slow password hash would add nothing but delay."""
    return hashlib.sha256(key.encode()).digest()
