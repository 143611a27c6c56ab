"""Owns where PostgreSQL and Valkey are: the user's URL, else what the embedded engines wrote down.

Must not start anything; `gateway.core.embedded` does and calls `publish`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gateway.core.errors import StepdownError
from gateway.core.settings import settings


def _file() -> Path:
    return settings().root / "secrets" / "endpoints.json"


def publish(name: str, url: str) -> None:
    """Writes down where an embedded engine listens (mode 0600: the URL holds its password)."""
    path = _file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = _read() | {name: url}
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(known))
    temporary.replace(path)


def _read() -> dict[str, str]:
    try:
        known: dict[str, str] = json.loads(_file().read_text())
    except FileNotFoundError:
        return {}
    return known


def _lookup(name: str, chosen: str | None, variable: str) -> str:
    url = chosen or _read().get(name)
    if url is None:
        raise StepdownError(
            503,
            f"{name}_unknown",
            f"{variable} is not set and no embedded engine has run in {settings().root}.",
            hint=f"Run `stepdown up`, or set {variable}.",
        )
    return url


def database_url() -> str:
    """DATABASE_URL, else the embedded PostgreSQL's. Raises StepdownError when there is neither."""
    return _lookup("database", settings().database_url, "DATABASE_URL")


def redis_url() -> str:
    """REDIS_URL, else the embedded Valkey's. Raises StepdownError when there is neither."""
    return _lookup("redis", settings().redis_url, "REDIS_URL")
