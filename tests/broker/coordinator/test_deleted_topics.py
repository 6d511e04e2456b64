"""A whole cluster: what a group committed in a topic goes with the topic, wherever the group is coordinated."""

from collections.abc import Awaitable, Callable

from harness.broker.wire.messages import DeleteTopicsRequest
from tests.broker.whole_cluster import WholeCluster

QUICK = {"offsets.topic.replication.factor": "2", "log.segment.delete.delay.ms": "0"}


async def test_a_deleted_topic_leaves_no_committed_offset_though_its_coordinator_dies_and_it_is_made_again() -> None:
    async with WholeCluster(QUICK) as cluster:
        await cluster.start(1, 2)
        for topic in ("orders", "others"):
            assert await cluster.create(topic, [1, 2]) == 0
            await cluster.until(known(cluster, topic, leader=1), f"a leader of {topic}")
        await cluster.until(coordinated(cluster), "a coordinator")
        first = await cluster.coordinator("g", 1)

        async def taken() -> bool:
            return [await cluster.commit(first, "g", topic, 42) for topic in ("orders", "others")] == [0, 0]

        await cluster.until(taken, "both commits")
        assert await cluster.committed(first, "g", "orders") == (0, 42)

        await delete(cluster, "orders")
        assert await cluster.committed(first, "g", "orders") == (0, -1)
        assert await cluster.committed(first, "g", "others") == (0, 42)
        assert await cluster.create("orders", [1, 2]) == 0
        await cluster.stop(first)
        second = 3 - first

        async def moved() -> bool:
            return await cluster.committed(second, "g", "others") == (0, 42)

        await cluster.until(moved, "the group at its next coordinator")
        assert await cluster.committed(second, "g", "orders") == (0, -1)


def known(cluster: WholeCluster, topic: str, leader: int) -> Callable[[], Awaitable[bool]]:
    async def seen() -> bool:
        return [await cluster.leader(topic, broker_id) for broker_id in cluster.brokers] == [leader, leader]

    return seen


def coordinated(cluster: WholeCluster) -> Callable[[], Awaitable[bool]]:
    async def seen() -> bool:
        return await cluster.coordinator("g", 1) >= 0

    return seen


async def delete(cluster: WholeCluster, topic: str) -> None:
    """Delete a topic, and return when no broker knows it any more."""
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
    answer = await cluster.ask(await cluster.controller(1), request, 3)
    assert answer.responses[0].error_code == 0

    async def gone() -> bool:
        answers = [await cluster.metadata(broker_id) for broker_id in cluster.brokers]
        return all(topic not in {each.name for each in answer.topics} for answer in answers)

    await cluster.until(gone, f"no {topic}")
