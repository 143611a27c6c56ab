"""Owns bringing the database to the newest schema. Must not define any table or migration."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, select

from gateway.core.db import engine

# Any fixed number will do, as long as nobody else in the same database locks it.
_LOCK = 0x57E9D043
_FOLDER = Path(__file__).parents[2] / "migrations"


def current_and_newest() -> tuple[str | None, str | None]:
    """The revision that the database has, None for an empty one, and the newest that we have."""
    with engine().connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    return current, ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def upgrade_head() -> None:
    """Runs the migrations that are missing. Several processes may call it at once: one works, the others wait."""
    config = _config()
    with engine().connect() as connection:
        connection.execute(select(func.pg_advisory_lock(_LOCK)))
        connection.commit()
        try:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(select(func.pg_advisory_unlock(_LOCK)))
            connection.commit()
