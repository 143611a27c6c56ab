"""Alembic's entry: runs migrations on the connection it was given, or on DATABASE_URL for `alembic` itself."""

from __future__ import annotations

import re
from typing import Any

from alembic import context
from sqlalchemy import Connection

from gateway.core.db import engine
from gateway.models import Base

_MONTH = re.compile(r"call_\d{4}_\d{2}")


def is_ours(name: str | None, kind: str, _parents: Any) -> bool:
    """Monthly partitions of `call` are made as months come, not by migrations."""
    return not (kind == "table" and name is not None and _MONTH.fullmatch(name))


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, include_name=is_ours, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with engine().connect() as connection:
        run(connection)
