"""The migrations, run one after another, make the very tables that the models describe, and can be taken back."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from gateway.capture.repository import ensure_partitions
from gateway.core.db import engine, session_scope
from gateway.core.migrate import upgrade_head
from gateway.models import Base

MIGRATIONS = Path(__file__).parents[3] / "migrations"


def _differences() -> list[object]:
    with session_scope() as session:  # months are made as they come, and are no part of the models
        ensure_partitions(session)
    options = {"compare_type": True, "include_name": lambda name, kind, _: not _is_month(name, kind)}
    with engine().connect() as connection:
        found: list[object] = compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)
    return found


def _is_month(name: str | None, kind: str) -> bool:
    return kind == "table" and name is not None and re.fullmatch(r"call_\d{4}_\d{2}", name) is not None


def test_migrations_make_what_the_models_say_and_can_be_taken_back(database: str) -> None:
    assert _differences() == []
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine().connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
        connection.commit()
    try:
        with psycopg.connect(database) as connection:
            assert connection.execute("select version_num from alembic_version").fetchall() == [("0001",)]
    finally:
        upgrade_head()
    assert _differences() == []
