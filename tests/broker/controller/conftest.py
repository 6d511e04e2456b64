from collections.abc import AsyncIterator

import pytest

from tests.broker.controller.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.stop()
