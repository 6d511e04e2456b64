"""This broker answers and stores what Kafka 3.9 did in the same situations, to the word."""

import json

import pytest

from benchmarks.side_by_side.group_script import TOPIC
from benchmarks.side_by_side.groups import RECORDED, SITUATIONS, Situation, play
from harness.simulation.transport import MemoryTransport
from tests.broker.whole_cluster import HOST, WholeCluster, client_port

QUICK = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "10",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.__doc__) for each in SITUATIONS])
async def test_a_group_is_as_with_kafka(situation: Situation) -> None:
    recorded = json.loads(RECORDED.read_text())
    async with WholeCluster(QUICK) as cluster:
        await cluster.start(1, t=[1])
        assert await cluster.create(TOPIC, [1]) == 0
        await cluster.until_led(TOPIC, 1)
        said = await play(situation, MemoryTransport(cluster.network, "client"), HOST, client_port(1))
    assert said == recorded[situation.__name__]
