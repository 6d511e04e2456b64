import pytest

from harness.simulation.zookeeper.ensemble import Ensemble


@pytest.fixture
def zookeeper() -> Ensemble:
    """A ZooKeeper with the paths that every broker makes sure of."""
    server = Ensemble()
    for path in ("/brokers/topics", "/config/topics", "/config/changes"):
        server.put(path)
    return server
