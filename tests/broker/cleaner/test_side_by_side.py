"""This broker's cleaner leaves what Kafka 3.9's does in the same situations, batch by batch."""

import json

import pytest

from benchmarks.side_by_side.cleaning import RECORDED, SITUATIONS, Situation, play
from harness.simulation.transport import MemoryTransport
from tests.broker.whole_cluster import HOST, WholeCluster, client_port


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.__doc__) for each in SITUATIONS])
async def test_a_compacted_topic_is_as_with_kafka(situation: Situation) -> None:
    recorded = json.loads(RECORDED.read_text())
    async with WholeCluster({"log.cleaner.backoff.ms": "100"}) as cluster:
        await cluster.start(1)
        left = await play(situation, MemoryTransport(cluster.network, "client"), HOST, client_port(1))
    assert left == recorded[situation.__name__]
