"""Owns the fixtures that every test may use: a temporary home, a migrated empty database, an empty broker.

`home`      a fresh STEPDOWN_HOME for this test, with every cached setting and connection forgotten.
`database`  `home`, and DATABASE_URL of a migrated PostgreSQL whose tables are empty. Returns the URL.
`broker`    `home`, and REDIS_URL of an empty Valkey. Returns the URL.

All three set the environment, so child processes see the same.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
import redis

from distill.trainers import THREADS
from gateway.core import db, jobs
from gateway.core.embedded import Postgres, Valkey, running
from gateway.core.migrate import upgrade_head
from gateway.core.settings import settings
from tests import leaks

# Before torch is loaded: its threads would starve the engines that run beside the tests.
for _name, _value in THREADS.items():
    os.environ.setdefault(_name, _value)

# Durability is tested on engines of its own; here it would only cost time.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


class Engines(NamedTuple):
    postgres_url: str
    valkey_url: str


def _forget() -> None:
    """Drops settings and connections that an earlier test's environment made."""
    if db.engine.cache_info().currsize:
        db.engine().dispose()
        db.engine.cache_clear()
    if db.async_engine.cache_info().currsize:
        asyncio.run(db.async_engine().dispose())
        db.async_engine.cache_clear()
    if jobs.producer.cache_info().currsize:
        jobs.producer().close()
        jobs.producer.cache_clear()
    settings.cache_clear()


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("engines")
    postgres, valkey = Postgres(folder, _FAST), Valkey(folder)
    with ExitStack() as stack:
        stack.enter_context(running(postgres, folder / "postgres.log"))
        stack.enter_context(running(valkey, folder / "valkey.log"))
        os.environ["DATABASE_URL"] = postgres.url
        _forget()
        upgrade_head()
        _forget()
        del os.environ["DATABASE_URL"]
        yield Engines(postgres.url, valkey.url)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    for name in [n for n in os.environ if n.startswith("STEPDOWN_")] + ["DATABASE_URL", "REDIS_URL"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEPDOWN_HOME", str(folder))
    _forget()
    yield folder
    _forget()
    assert leaks.in_logs(folder / "logs") == []


@pytest.fixture
def database(engines: Engines, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DATABASE_URL", engines.postgres_url)
    settings.cache_clear()
    with psycopg.connect(engines.postgres_url) as connection:
        tables = connection.execute(
            "select tablename from pg_tables where schemaname = 'public' and tablename <> 'alembic_version'"
        ).fetchall()
        # Only what holds rows: truncating every table takes longer than most tests.
        probe = 'select exists (select from "{}")'
        filled = [t for (t,) in tables if connection.execute(probe.format(t)).fetchone() == (True,)]
        if filled:
            connection.execute("truncate " + ", ".join(f'"{t}"' for t in filled) + " cascade")
    return engines.postgres_url


@pytest.fixture
def broker(engines: Engines, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("REDIS_URL", engines.valkey_url)
    settings.cache_clear()
    with redis.Redis.from_url(engines.valkey_url) as client:
        client.flushall()
    return engines.valkey_url
