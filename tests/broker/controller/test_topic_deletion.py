"""Deleting topics, as the whole controller does it over a ZooKeeper and a network in memory."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness.broker.wire.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from harness.broker.zookeeper.znodes import TopicAssignment, delete_topic_path, topic_path
from harness.events import PartitionStateChange, ReplicaStateChange, ZkWrite
from tests.broker.controller.world import World, settle

STORAGE_ERROR = 56


async def delete(world: World, topic: str = "t") -> None:
    world.server.put(delete_topic_path(topic), b"")
    await settle()


def is_gone(world: World) -> bool:
    left = [path for path in world.server.nodes if path.startswith("/brokers/topics/t")]
    return not left and "/config/topics/t" not in world.server.nodes and not wishes(world)


def wishes(world: World) -> list[str]:
    return world.server.names("/admin/delete_topics")


def deletions(world: World, broker_id: int) -> list[tuple[str, list[int]]]:
    """What a broker was asked to delete, by request."""
    return [
        (topic.topic_name, [state.partition_index for state in topic.partition_states])
        for message in world.transport.to(broker_id)
        if isinstance(message, StopReplicaRequest)
        for topic in message.topic_states
        if all(state.delete_partition for state in topic.partition_states)
    ]


def moves(world: World, kind: type[Any], **where: int) -> list[str]:
    (active,) = [broker for broker in world.brokers.values() if broker.controller.is_active]
    events: list[Any] = [
        event for event in active.events(kind) if all(getattr(event, k) == v for k, v in where.items())
    ]
    return [event.to_state for event in events]


async def test_a_topic_goes_and_nothing_of_it_is_left(world: World) -> None:
    await world.start(1, 2, 3)
    await world.create("t", {0: [1, 2, 3], 1: [2, 3, 1]}, {"retention.ms": "1"})
    await world.create("other", {0: [1]})
    await delete(world)
    assert is_gone(world)
    assert world.server.names("/brokers/topics") == ["other"]
    for broker_id in (1, 2, 3):
        assert deletions(world, broker_id) == [("t", [0, 1])]
    assert moves(world, PartitionStateChange, partition=1)[-2:] == ["OfflinePartition", "NonExistentPartition"]
    assert moves(world, ReplicaStateChange, partition=1, replica=2)[2:] == [
        "OfflineReplica",
        "ReplicaDeletionStarted",
        "ReplicaDeletionSuccessful",
        "NonExistentReplica",
    ]


async def test_zookeeper_is_cleaned_up_in_kafkas_order_after_three_writes_of_the_state(world: World) -> None:
    await world.start(1, 2, 3)
    await world.create("t", {0: [1, 2, 3]}, {"retention.ms": "1"})
    before = len(world.brokers[1].events(ZkWrite))
    await delete(world)
    writes = [(w.op, w.path, w.result) for w in world.brokers[1].events(ZkWrite)][before:]
    state = world.path()
    assert writes == [
        *[("set", state, "ok")] * 3,
        ("delete", state, "ok"),
        ("delete", "/brokers/topics/t/partitions/0", "ok"),
        ("delete", "/brokers/topics/t/partitions", "ok"),
        ("delete", "/brokers/topics/t", "ok"),
        ("delete", "/config/topics/t", "ok"),
        ("delete", "/admin/delete_topics/t", "ok"),
    ]


async def test_every_broker_is_told_to_forget_the_topic_before_its_replicas_go(world: World) -> None:
    await world.start(1, 2, t={0: [1]})
    world.transport.received.clear()
    await delete(world)
    for broker_id, kinds in ((1, [UpdateMetadataRequest, StopReplicaRequest]), (2, [UpdateMetadataRequest])):
        messages = [
            m
            for m in world.transport.to(broker_id)
            if not (isinstance(m, UpdateMetadataRequest) and not m.topic_states)
        ]
        assert [type(message) for message in messages][: len(kinds)] == kinds
        assert messages[0].topic_states[0].partition_states[0].leader == -2
    assert not any(isinstance(message, LeaderAndIsrRequest) for _, message in world.transport.received)


async def test_a_replica_on_a_dead_broker_keeps_the_topic_until_the_broker_is_back(world: World) -> None:
    await world.start(1, 2, 3, t={0: [1, 2, 3]})
    await world.kill(3)
    await delete(world)
    assert (wishes(world), deletions(world, 1), deletions(world, 2)) == (["t"], [("t", [0])], [("t", [0])])
    assert moves(world, ReplicaStateChange, replica=3)[-3:] == [
        "OfflineReplica",
        "ReplicaDeletionIneligible",
        "OfflineReplica",
    ]
    await world.start(3)
    assert is_gone(world)
    assert deletions(world, 3) == [("t", [0])]
    assert deletions(world, 1) == [("t", [0])]


async def test_a_broker_that_dies_before_it_answers_is_asked_again_when_it_is_back(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    world.transport.silent.add(2)
    await delete(world)
    assert moves(world, ReplicaStateChange, replica=2)[-1] == "ReplicaDeletionStarted"
    await world.kill(2)
    assert moves(world, ReplicaStateChange, replica=2)[-2:] == ["ReplicaDeletionIneligible", "OfflineReplica"]
    world.transport.silent.discard(2)
    await world.start(2)
    assert is_gone(world)


async def test_a_replica_that_could_not_be_deleted_is_tried_again_when_its_broker_starts_anew(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2], 1: [2, 1]})
    world.transport.delete_errors[2] = {("t", 1): STORAGE_ERROR}
    await delete(world)
    assert wishes(world) == ["t"]
    assert moves(world, ReplicaStateChange, partition=0, replica=2)[-1] == "ReplicaDeletionSuccessful"
    world.transport.delete_errors.clear()
    await world.kill(2)
    await world.start(2)
    assert is_gone(world)
    assert deletions(world, 2) == [("t", [0, 1]), ("t", [1])]


async def test_a_new_controller_goes_on_with_a_deletion(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 3]})
    world.transport.silent.add(3)
    await delete(world)
    world.transport.silent.discard(3)
    await world.kill(1)
    assert is_gone(world)


async def test_a_new_controller_waits_for_the_dead_too(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 3]})
    await world.kill(3)
    await delete(world)
    await world.kill(1)
    assert wishes(world) == ["t"]
    await world.start(3)
    assert is_gone(world)


async def test_a_dead_leader_is_not_replaced_while_its_topic_goes(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 3, 1]})
    world.transport.silent.add(3)
    await delete(world)
    epoch = world.state().leader_epoch
    await world.kill(2)
    assert (world.state().leader, world.state().leader_epoch) == (-1, epoch)


async def test_a_topic_of_the_same_name_can_be_created_at_once(world: World) -> None:
    await world.start(1, 2)
    for _ in range(2):
        await world.create("t", {0: [1, 2]})
        assert world.state().leader_epoch == 0
        await delete(world)
        assert is_gone(world)


async def test_a_wish_for_a_topic_that_is_not_there_is_dropped(world: World) -> None:
    await world.start(1)
    await delete(world, "nothing")
    assert wishes(world) == []


async def test_without_delete_topic_enable_wishes_are_dropped(world: World) -> None:
    await world.start(1, 2, properties={"delete.topic.enable": "false"}, t={0: [1, 2]})
    await delete(world)
    assert (wishes(world), world.state().leader) == ([], 1)


async def test_a_new_controller_without_delete_topic_enable_drops_old_wishes(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 3]})
    await world.kill(3)
    await delete(world)
    await world.kill(1)
    await world.kill(2)
    await world.start(2, properties={"delete.topic.enable": "false"})
    assert wishes(world) == []


async def test_partitions_are_not_added_to_a_topic_that_goes(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    await world.kill(2)
    await delete(world)
    grown = TopicAssignment(partitions={0: (1, 2), 1: (1, 2)}, topic_id="id")
    world.server.put(topic_path("t"), grown.encode())
    await settle()
    restored = TopicAssignment.decode("t", world.server.data(topic_path("t")))
    assert restored == TopicAssignment(partitions={0: (1, 2)}, topic_id="id")
    await world.start(2)
    assert is_gone(world)


async def test_a_topic_that_is_being_reassigned_waits_until_that_is_over(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    active = world.brokers[1].active
    active._context.reassigning.add(("t", 0))
    await delete(world)
    assert (wishes(world), world.state().leader, deletions(world, 1)) == (["t"], 1, [])
    active._context.reassigning.clear()
    await active._deletion.resume(["t"])
    await settle()
    assert is_gone(world)


@pytest.mark.parametrize(
    "replicas", [pytest.param([2], id="its only replica is dead"), pytest.param([2, 3], id="all its replicas are dead")]
)
async def test_a_topic_that_never_had_a_leader_goes_when_its_brokers_come(
    world: World, replicas: Sequence[int]
) -> None:
    await world.start(1, t={0: replicas})
    await delete(world)
    assert wishes(world) == ["t"]
    await world.start(*replicas)
    assert is_gone(world)
