import pytest

from harness.simulation.disk import MemoryStorage


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()
