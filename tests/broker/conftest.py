import pytest

from tests.broker.zookeeper.fake_zookeeper import FakeServer


@pytest.fixture
def zookeeper() -> FakeServer:
    """A ZooKeeper with the paths that every broker makes sure of."""
    server = FakeServer()
    for path in ("/brokers/topics", "/config/topics", "/config/changes"):
        server.put(path)
    return server
