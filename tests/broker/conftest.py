from collections.abc import AsyncIterator

import pytest

from harness.simulation.zookeeper.ensemble import Ensemble
from tests.broker.replica_cluster import ReplicaCluster
from tests.virtual_time import only_virtual_time, pytest_asyncio_loop_factories

__all__ = ["only_virtual_time", "pytest_asyncio_loop_factories"]


@pytest.fixture
def zookeeper() -> Ensemble:
    """A ZooKeeper with the paths that every broker makes sure of."""
    server = Ensemble()
    for path in ("/brokers/topics", "/config/topics", "/config/changes"):
        server.put(path)
    return server


@pytest.fixture
async def cluster() -> AsyncIterator[ReplicaCluster]:
    """Three brokers that replicate, of which the first leads the partition."""
    async with ReplicaCluster() as cluster:
        await cluster.elect(1)
        yield cluster
