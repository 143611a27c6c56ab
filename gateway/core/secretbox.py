"""Owns encryption of stored credentials with the master key. Must never log or return a secret."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from gateway.core.errors import StepdownError
from gateway.core.settings import read_or_create_secret, settings


def key_path() -> Path:
    """Where the master key is, or will be once something is sealed."""
    return settings().master_key_file or settings().secrets_dir / "master.key"


def _box() -> Fernet:
    secret = read_or_create_secret(key_path())
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(secret.encode()).digest()))


def seal(secret: str) -> bytes:
    """Encrypts a credential for storage."""
    return _box().encrypt(secret.encode())


def unseal(sealed: bytes) -> str:
    """Decrypts a stored credential. Raises StepdownError when the master key is another one."""
    try:
        return _box().decrypt(sealed).decode()
    except InvalidToken:
        raise StepdownError(
            500,
            "master_key_mismatch",
            "A stored credential cannot be decrypted with this master key.",
            hint="Put the old key back at STEPDOWN_MASTER_KEY_FILE, or enter the credential again.",
        ) from None
