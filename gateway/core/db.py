"""Owns database engines and sessions. Must not know any table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy import JSON, Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker

from gateway.core import jsontext
from gateway.core.endpoints import database_url


def sqlalchemy_url(url: str) -> str:
    """`postgres://` or `postgresql://` as SQLAlchemy's psycopg 3 dialect."""
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def copy_rows(session: Session, model: type[DeclarativeBase], rows: Sequence[Mapping[str, Any]]) -> None:
    """Adds rows that are not there yet by COPY, in the session's transaction: several times faster than INSERT.

    All rows name the same columns. Raises psycopg.Error; one bad row, or one that is there, refuses them all.
    """
    if not rows:
        return
    names = list(rows[0])
    json = [isinstance(model.__table__.c[name].type, JSON) for name in names]
    into = SQL("COPY {} ({}) FROM STDIN").format(
        Identifier(model.__tablename__), SQL(", ").join(map(Identifier, names))
    )
    connection = session.connection().connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    with connection.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            values = [row[name] for name in names]
            copy.write_row(
                [
                    jsontext.encode(v).decode() if is_json and v is not None else v
                    for v, is_json in zip(values, json, strict=True)
                ]
            )


@lru_cache
def engine() -> Engine:
    """The process's synchronous engine, for workers, the writer and the CLI."""
    return create_engine(sqlalchemy_url(database_url()), pool_pre_ping=True, pool_size=5, max_overflow=10)


@lru_cache
def async_engine() -> AsyncEngine:
    """The process's asynchronous engine, for the control plane."""
    return create_async_engine(sqlalchemy_url(database_url()), pool_pre_ping=True, pool_size=5, max_overflow=10)


async def dispose_async() -> None:
    """Closes the asynchronous engine's connections, on the event loop that opened them."""
    if async_engine.cache_info().currsize:
        await async_engine().dispose()
        async_engine.cache_clear()


@contextmanager
def session_scope() -> Iterator[Session]:
    """A session that commits when the block ends well and rolls back when it does not."""
    with sessionmaker(engine(), expire_on_commit=False).begin() as session:
        yield session


@asynccontextmanager
async def async_session() -> AsyncIterator[AsyncSession]:
    """A session for one request; the router commits."""
    async with async_sessionmaker(async_engine(), expire_on_commit=False)() as session:
        yield session
