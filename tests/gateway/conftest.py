"""Owns the fixtures of the data plane: `upstream`, and `world` with a gateway in front of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.world import MockUpstream, World, running_gateway, seed


@pytest.fixture
def upstream() -> Iterator[MockUpstream]:
    mock = MockUpstream()
    yield mock
    mock.stop()


@pytest.fixture
def world(database: str, upstream: MockUpstream) -> Iterator[World]:
    """Set environment variables before asking for it (`request.getfixturevalue`) to change the settings."""
    rows = seed(upstream.base_url)
    with running_gateway() as (url, app):
        made = World(url, app, upstream, rows)
        yield made
        made.client.close()
