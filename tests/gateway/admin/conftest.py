"""The admin API over an empty database, asked as the administrator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.orm import Session

from gateway.admin.router import router
from gateway.admin.session import admin_token
from gateway.core import db

BASE = "http://127.0.0.1:8787"


def transport() -> httpx.ASGITransport:
    app = FastAPI()
    app.include_router(router)
    return httpx.ASGITransport(app)


@pytest.fixture
async def stranger(database: str) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody without token or cookie."""
    async with httpx.AsyncClient(transport=transport(), base_url=BASE) as client:
        yield client
    await db.async_engine().dispose()
    db.async_engine.cache_clear()


@pytest.fixture
async def api(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    """The administrator by bearer token."""
    stranger.headers["authorization"] = f"Bearer {admin_token()}"
    return stranger


@pytest.fixture
def session(database: str) -> Iterator[Session]:
    """A synchronous session for preparing rows; commit before asking the API."""
    with db.session_scope() as opened:
        yield opened
