"""A gateway before the provider that answers real clients."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.gateway.clients import provider
from tests.gateway.world import World


@pytest.fixture
def town(world: World) -> World:
    """The gateway, and the provider behind it."""
    world.upstream.reply = provider.reply
    return world


@pytest.fixture
def app(town: World) -> Iterator[openai.OpenAI]:
    """The openai package as an app has it: base URL and key changed, nothing else."""
    with openai.OpenAI(base_url=f"{town.url}/v1", api_key=town.rows.key) as client:
        yield client
