"""The fixtures give each test an empty database and broker, to sync and async code and on new event loops."""

import pytest
import redis
from sqlalchemy import func, select

from gateway.core.db import async_session, session_scope
from gateway.models import Project


@pytest.mark.parametrize("turn", [1, 2])
def test_sync_sessions_start_empty(database: str, turn: int) -> None:
    with session_scope() as session:
        assert session.scalar(select(func.count()).select_from(Project)) == 0
        session.add(Project(name="shop"))


@pytest.mark.parametrize("turn", [1, 2])
async def test_async_sessions_start_empty(database: str, turn: int) -> None:
    async with async_session() as session:
        assert await session.scalar(select(func.count()).select_from(Project)) == 0
        session.add(Project(name="shop"))
        await session.commit()


@pytest.mark.parametrize("turn", [1, 2])
def test_broker_starts_empty(broker: str, turn: int) -> None:
    client = redis.Redis.from_url(broker)
    assert client.dbsize() == 0
    client.set("left", "over")
