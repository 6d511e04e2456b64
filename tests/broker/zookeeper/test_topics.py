import pytest

from harness.broker.zookeeper.client import Create, NoNode, Op
from harness.broker.zookeeper.topics import (
    TopicExists,
    create_topic,
    is_deleted,
    read_topic_assignment,
    read_topic_config,
)
from harness.broker.zookeeper.znodes import TopicAssignment
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper


@pytest.fixture
def server() -> Ensemble:
    made = Ensemble()
    made.put("/brokers/topics")
    made.put("/config/topics")
    return made


@pytest.fixture
async def zk(server: Ensemble) -> SimulatedZooKeeper:
    made = SimulatedZooKeeper(server)
    await made.connect()
    return made


async def test_a_topics_configuration_stands_before_the_topic(server: Ensemble, zk: SimulatedZooKeeper) -> None:
    await create_topic(zk, "t", {0: [1, 2], 1: [2, 1]}, {"min.insync.replicas": "2"}, "an id")
    assert [path for _, _, path in server.writes[-2:]] == ["/config/topics/t", "/brokers/topics/t"]
    assert await read_topic_config(zk, "t") == {"min.insync.replicas": "2"}
    assert await read_topic_assignment(zk, "t") == TopicAssignment(partitions={0: (1, 2), 1: (2, 1)}, topic_id="an id")


async def test_a_topic_is_created_once_and_keeps_its_configuration(zk: SimulatedZooKeeper) -> None:
    await create_topic(zk, "t", {0: [1]}, {"a": "1"})
    with pytest.raises(TopicExists):
        await create_topic(zk, "t", {0: [2]}, {"a": "2"})
    assert await read_topic_config(zk, "t") == {"a": "1"}


async def test_a_lost_race_is_a_topic_that_exists(server: Ensemble, zk: SimulatedZooKeeper) -> None:
    def other_is_faster(op: Op) -> None:
        if isinstance(op, Create) and op.path == "/brokers/topics/t":
            server.put("/brokers/topics/t", TopicAssignment(partitions={0: (9,)}).encode())

    server.before_write = other_is_faster
    with pytest.raises(TopicExists):
        await create_topic(zk, "t", {0: [1]}, {})
    assert await read_topic_assignment(zk, "t") == TopicAssignment(partitions={0: (9,)})


async def test_a_configuration_left_by_a_crash_is_replaced(server: Ensemble, zk: SimulatedZooKeeper) -> None:
    server.put("/config/topics/t", b"left over")
    await create_topic(zk, "t", {0: [1]}, {"a": "1"})
    assert await read_topic_config(zk, "t") == {"a": "1"}


async def test_an_unknown_topic_has_no_configuration_and_no_assignment(zk: SimulatedZooKeeper) -> None:
    assert await read_topic_config(zk, "t") == {}
    assert await read_topic_assignment(zk, "t") is None
    with pytest.raises(NoNode):
        await zk.get("/brokers/topics/t")


async def test_a_partition_is_deleted_if_nothing_assigns_it_or_its_topic_is_to_go(
    server: Ensemble, zk: SimulatedZooKeeper
) -> None:
    assert await is_deleted(zk, ("t", 0))
    await create_topic(zk, "t", {0: [1]}, {})
    assert [await is_deleted(zk, ("t", number)) for number in (0, 1)] == [False, True]
    server.put("/admin/delete_topics/t")
    assert await is_deleted(zk, ("t", 0))


async def test_without_an_answer_nothing_is_known_to_be_deleted(zk: SimulatedZooKeeper) -> None:
    await zk.close()
    assert not await is_deleted(zk, ("t", 0))
