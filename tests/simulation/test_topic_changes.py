"""Topics that grow and are deleted, in virtual time: with all brokers there, and while brokers die and return."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import CreatePartitionsRequest, DeleteTopicsRequest
from harness.broker.wire.transport import Message
from harness.broker.zookeeper.znodes import ControllerZnode
from harness.experiment.drive import create_topics
from harness.scenario.model import TopicSpec
from harness.simulation.cluster import CLIENT_PORT, SimulatedCluster, host_of
from harness.simulation.loop import run
from harness.simulation.topics import SimulatedTopicAdmin
from harness.simulation.transport import MemoryTransport

DELAY_S = 60
"""Kafka's `log.segment.delete.delay.ms`."""
SESSION_S = 4.0


def in_cluster(story: Callable[[SimulatedCluster], Awaitable[None]], *, seed: int) -> None:
    """Tell a story of three brokers with a topic of three partitions on each of them."""

    async def work() -> None:
        cluster = SimulatedCluster([0, 1, 2], seed=seed)
        assert all(await asyncio.gather(*(broker.start() for broker in cluster.brokers.values())))
        await asyncio.sleep(1)
        await create(cluster)
        await story(cluster)

    run(work())


async def create(cluster: SimulatedCluster) -> None:
    await create_topics(SimulatedTopicAdmin(cluster).create, [TopicSpec(name="t", partitions=3, replication_factor=3)])


def controller(cluster: SimulatedCluster) -> int:
    return ControllerZnode.decode(cluster.ensemble.nodes["/controller"].data).broker_id


async def ask(cluster: SimulatedCluster, message: Message, version: int) -> Message:
    transport = MemoryTransport(cluster.network, "harness")
    connection = await transport.connect(host_of(controller(cluster)), CLIENT_PORT, client_id="t", timeout_s=10)
    try:
        return await connection.request(message, version, timeout_s=60)
    finally:
        connection.close()


async def delete(cluster: SimulatedCluster) -> int:
    response = await ask(cluster, DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 3)
    return int(response.responses[0].error_code)


def znodes(cluster: SimulatedCluster) -> list[str]:
    whole = [path for path in cluster.ensemble.nodes if path.startswith(("/brokers/topics/t", "/config/topics/t"))]
    return whole + cluster.ensemble.names("/admin/delete_topics")


def folders(cluster: SimulatedCluster, broker_id: int) -> list[str]:
    return [name for name in cluster[broker_id].disk.list("") if name.startswith("t-")]


async def until_gone(cluster: SimulatedCluster) -> None:
    for _ in range(300):
        if not znodes(cluster):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"still there: {znodes(cluster)}")


@pytest.mark.parametrize("seed", [1, 2, 8])
def test_a_topic_goes_from_zookeeper_and_after_a_while_from_the_disks(seed: int) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert await delete(cluster) == ErrorCode.NONE
        await until_gone(cluster)
        for broker_id in cluster.brokers:
            assert folders(cluster, broker_id) == ["t-0.0-delete", "t-1.0-delete", "t-2.0-delete"]
        await create(cluster)
        await asyncio.sleep(DELAY_S)
        for broker_id in cluster.brokers:
            assert folders(cluster, broker_id) == ["t-0", "t-1", "t-2"]

    in_cluster(story, seed=seed)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("dead_first", [True, False], ids=["dead before the wish", "dies in the middle"])
def test_a_dead_broker_keeps_the_topic_until_it_is_back(seed: int, dead_first: bool) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (victim, *_) = sorted(cluster.brokers.keys() - {controller(cluster)})
        if dead_first:
            cluster[victim].kill()
            await asyncio.sleep(2 * SESSION_S)
            assert await delete(cluster) == ErrorCode.NONE
        else:
            cluster[victim].pause()
            assert await delete(cluster) == ErrorCode.NONE
            cluster[victim].kill()
        await asyncio.sleep(3 * SESSION_S)
        assert cluster.ensemble.names("/admin/delete_topics") == ["t"]
        assert await cluster[victim].start()
        await until_gone(cluster)
        await asyncio.sleep(DELAY_S + 1)
        assert [folders(cluster, broker_id) for broker_id in cluster.brokers] == [[], [], []]

    in_cluster(story, seed=seed)


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.01, 0.05])
def test_a_new_controller_finishes_what_the_dead_one_began(after_s: float) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        first = controller(cluster)
        wish = asyncio.ensure_future(delete(cluster))
        for _ in range(1000):
            if cluster.ensemble.names("/admin/delete_topics"):
                break
            await asyncio.sleep(0.0005)
        await asyncio.sleep(after_s)
        cluster[first].kill()
        await asyncio.gather(wish, return_exceptions=True)
        await asyncio.sleep(3 * SESSION_S)
        assert await cluster[first].start()
        await until_gone(cluster)
        await asyncio.sleep(DELAY_S + 1)
        assert [folders(cluster, broker_id) for broker_id in cluster.brokers] == [[], [], []]

    in_cluster(story, seed=3)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_topic_grows_while_a_broker_is_dead(seed: int) -> None:
    wanted = CreatePartitionsRequest.CreatePartitionsTopic

    async def story(cluster: SimulatedCluster) -> None:
        (victim, *_) = sorted(cluster.brokers.keys() - {controller(cluster)})
        cluster[victim].kill()
        await asyncio.sleep(2 * SESSION_S)
        placed = [wanted.CreatePartitionsAssignment(broker_ids=[0, 1, 2])]
        by_hand = CreatePartitionsRequest(
            topics=[wanted(name="t", count=4, assignments=placed)], timeout_ms=5000, validate_only=False
        )
        assert (await ask(cluster, by_hand, 1)).results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await cluster[victim].start()
        await asyncio.sleep(SESSION_S)
        assert (await ask(cluster, by_hand, 1)).results[0].error_code == ErrorCode.NONE
        anywhere = CreatePartitionsRequest(
            topics=[wanted(name="t", count=6, assignments=None)], timeout_ms=5000, validate_only=False
        )
        assert (await ask(cluster, anywhere, 1)).results[0].error_code == ErrorCode.NONE
        assert folders(cluster, victim) == [f"t-{number}" for number in range(6)]

    in_cluster(story, seed=seed)
