"""This broker answers and stores what Kafka 3.9 did in the same situations, to the word."""

import json

import pytest

from harness.experiment.drive import create_topics
from harness.scenario.model import TopicSpec
from harness.simulation.loop import run
from harness.simulation.topics import SimulatedTopicAdmin
from harness.simulation.transport import MemoryTransport
from tests.broker.simulated_brokers import simulated
from tests.broker.whole_cluster import HOST, WholeCluster, client_port
from tests.shared import ROOT
from tools.side_by_side import failing_groups
from tools.side_by_side.group_script import TOPIC
from tools.side_by_side.groups import PARTICULAR, PROPERTIES, RECORDED, SITUATIONS, Situation, play

ALONE = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "10"}


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.__doc__) for each in SITUATIONS])
async def test_a_group_is_as_with_kafka(situation: Situation) -> None:
    recorded = json.loads(RECORDED.read_text())
    properties = {**ALONE, **PROPERTIES, **PARTICULAR.get(situation, {})}
    async with WholeCluster(properties, clocks_go=True) as cluster:
        await cluster.start(1, t=[1])
        assert await cluster.create(TOPIC, [1]) == 0
        await cluster.until_led(TOPIC, 1)
        transcript = await play(situation, MemoryTransport(cluster.network, "client"), HOST, client_port(1))
    assert transcript == recorded[situation.__name__]


def test_the_documents_say_in_how_many_situations() -> None:
    differences = " ".join((ROOT / "docs/explanation/differences-from-kafka.md").read_text().split())
    assert f"plays {len(SITUATIONS)} situations, request by request" in differences


async def failing(situation: failing_groups.Situation, replicas: int) -> list[str]:
    brokers = await simulated(len(failing_groups.IDS), failing_groups.properties(replicas))
    spec = TopicSpec(name=TOPIC, partitions=1, replication_factor=3)
    await create_topics(SimulatedTopicAdmin(brokers.cluster).create, [spec])
    return await failing_groups.play(situation, brokers.transport, brokers)


@pytest.mark.parametrize(
    ("situation", "replicas"), [pytest.param(*each, id=each[0].__doc__) for each in failing_groups.SITUATIONS.items()]
)
def test_a_group_without_its_coordinator_is_as_with_kafka(situation: failing_groups.Situation, replicas: int) -> None:
    recorded = json.loads(failing_groups.RECORDED.read_text())
    assert run(failing(situation, replicas)) == recorded[situation.__name__]
