import pytest

from harness.simulation.zookeeper.ensemble import Ensemble
from tests.virtual_time import only_virtual_time, pytest_asyncio_loop_factories

__all__ = ["only_virtual_time", "pytest_asyncio_loop_factories"]


@pytest.fixture
def zookeeper() -> Ensemble:
    """A ZooKeeper with the paths that every broker makes sure of."""
    server = Ensemble()
    for path in ("/brokers/topics", "/config/topics", "/config/changes"):
        server.put(path)
    return server
