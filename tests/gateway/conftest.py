"""Owns the fixtures of the data plane: `upstream`, and `world` with a gateway in front of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests import leaks
from tests.gateway.world import MockUpstream, World, running_gateway, seed


@pytest.fixture(autouse=True)
def _no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test of the gateway does, no key of anybody gets into a log."""
    caplog.set_level(logging.INFO)
    yield
    for phase in ("setup", "call"):
        assert leaks.in_records(caplog.get_records(phase)) == []


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
