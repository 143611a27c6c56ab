"""Owns proof of being the administrator: the admin token, and session cookies made from it.

Must not know HTTP or the database. Cookies are Fernet tokens (signed, dated) under keys that rotate daily; a
cookie also names the admin token it was made from, so a new token ends every session.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from gateway.core.settings import read_or_create_secret, settings

SESSION_S = 7 * 24 * 3600
_ROTATE_S = 24 * 3600


def admin_token() -> str:
    """The admin token, made on first use in STEPDOWN_HOME/secrets/admin.token."""
    return read_or_create_secret(settings().secrets_dir / "admin.token")


def is_admin_token(token: str) -> bool:
    """Whether `token` is the admin token, compared in constant time."""
    return hmac.compare_digest(token.encode(), admin_token().encode())


def new_session() -> str:
    """The value of a fresh session cookie."""
    return _signer(rotate=True).encrypt(_fingerprint()).decode()


def is_session(cookie: str) -> bool:
    """Whether `cookie` is a session of this installation that has not expired."""
    try:
        return hmac.compare_digest(_signer().decrypt(cookie.encode(), ttl=SESSION_S), _fingerprint())
    except InvalidToken:
        return False


def _fingerprint() -> bytes:
    return hashlib.sha256(b"stepdown session " + admin_token().encode()).hexdigest().encode()


def _signer(*, rotate: bool = False) -> MultiFernet:
    """All keys that may still have live sessions, newest first: the newest signs, any of them verifies."""
    path = settings().secrets_dir / "session.keys"
    now = time.time()
    dated = [(made, key) for made, key in _read(path) if now - made < SESSION_S + _ROTATE_S]
    if not dated or (rotate and now - dated[0][0] > _ROTATE_S):
        dated.insert(0, (now, Fernet.generate_key().decode()))
        _write(path, dated)
    return MultiFernet([Fernet(key) for _, key in dated])


def _read(path: Path) -> list[tuple[float, str]]:
    try:
        lines = path.read_text().split("\n")
    except FileNotFoundError:
        return []
    pairs = [line.split(" ") for line in lines if line]
    return [(float(made), key) for made, key in pairs]


def _write(path: Path, dated: list[tuple[float, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.touch(mode=0o600)
    temporary.write_text("".join(f"{made:.0f} {key}\n" for made, key in dated))
    temporary.replace(path)
