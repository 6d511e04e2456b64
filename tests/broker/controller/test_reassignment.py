"""Partitions move to other brokers: the writes, the requests, and interruptions."""

import pytest

from harness.broker.controller.assignment import Assignment
from harness.broker.controller.errors import ControllerMovedError
from harness.broker.controller.reassignment_requests import Wish
from harness.broker.metrics.agreement import of_controller
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import LeaderAndIsrRequest, StopReplicaRequest
from harness.broker.zookeeper.znodes import REASSIGN_PARTITIONS, TopicAssignment, encode_reassignments, topic_path
from harness.events import Election, EpochBump, ReplicaStateChange, ZkWrite
from tests.broker.controller.world import FakeBroker, World, settle

T = ("t", 0)
CONTROLLER = 5
"""Leads nothing here, so that its failover is not the failure of a replica."""


@pytest.fixture
async def moving(world: World) -> World:
    """A topic on brokers 1 and 2; brokers 3 and 4 are idle."""
    await world.start(CONTROLLER, 1, 2, 3, 4, t={0: [1, 2]})
    world.transport.received.clear()
    return world


async def ask(world: World, *target: int | None) -> ErrorCode:
    wish = Wish(target=None if target == (None,) else tuple(replica for replica in target if replica is not None))
    results = await active(world).controller.reassign({T: wish})
    await settle()
    return results[T].error


async def in_sync(world: World, *isr: int) -> None:
    world.leader_writes_isr(isr)
    await settle()


def active(world: World) -> FakeBroker:
    (controller,) = [broker for broker in world.brokers.values() if broker.controller.is_active]
    return controller


def assigned(world: World) -> Assignment:
    znode = TopicAssignment.decode("t", world.server.data(topic_path("t")))
    return Assignment(replicas=znode.partitions[0], adding=znode.adding.get(0, ()), removing=znode.removing.get(0, ()))


def deleted(world: World, broker_id: int) -> list[int]:
    """Leader epochs of the requests that had a broker delete its replica."""
    return [
        state.leader_epoch
        for message in world.transport.to(broker_id)
        if isinstance(message, StopReplicaRequest)
        for topic in message.topic_states
        for state in topic.partition_states
        if state.delete_partition
    ]


def leader_and_isrs(world: World, broker_id: int) -> list[tuple[int, list[int], list[int], list[int], bool]]:
    """What LeaderAndIsr told a broker: leader epoch, replicas, adding, removing, new or not."""
    return [
        (p.leader_epoch, p.replicas, p.adding_replicas, p.removing_replicas, p.is_new)
        for message in world.transport.to(broker_id)
        if isinstance(message, LeaderAndIsrRequest)
        for topic in message.topic_states
        for p in topic.partition_states
    ]


def writes(world: World) -> list[str]:
    """What the controller wrote about the partition or its topic since it was created."""
    paths = {world.path(): "state", topic_path("t"): "topic"}
    events = [event for broker in world.brokers.values() for event in broker.events(ZkWrite)]
    return [paths[e.path] for e in events if e.path in paths and e.op == "set" and e.by == "controller"]


async def test_a_replica_is_replaced_once_the_new_one_is_in_sync(moving: World) -> None:
    assert await ask(moving, 1, 3) is ErrorCode.NONE
    assert assigned(moving) == Assignment(replicas=(1, 3, 2), adding=(3,), removing=(2,))
    assert (moving.state().leader_epoch, moving.state().isr) == (1, (1, 2))
    for broker_id in (1, 2):
        assert leader_and_isrs(moving, broker_id) == [(1, [1, 3, 2], [3], [2], False)]
    assert leader_and_isrs(moving, 3) == [(1, [1, 3, 2], [3], [2], False), (1, [1, 3, 2], [3], [2], True)]
    assert await active(moving).controller.reassignments(None) == {T: assigned(moving)}
    await in_sync(moving, 1, 2, 3)
    assert assigned(moving) == Assignment(replicas=(1, 3))
    assert (moving.state().leader, moving.state().leader_epoch, moving.state().isr) == (1, 3, (1, 3))
    assert deleted(moving, 2) == [3]
    assert writes(moving) == ["topic", "state", "state", "state", "topic"]
    assert await active(moving).controller.reassignments(None) == {}
    assert [e.result.leader_epoch for e in active(moving).events(EpochBump)] == [1, 2]


async def test_a_leader_that_goes_hands_over_to_a_target_replica(moving: World) -> None:
    assert await ask(moving, 4, 3) is ErrorCode.NONE
    await in_sync(moving, 1, 2, 3)
    assert assigned(moving).is_reassigned
    await in_sync(moving, 1, 2, 3, 4)
    assert (moving.state().leader, moving.state().isr) == (4, (3, 4))
    election = active(moving).events(Election)[-1]
    assert (election.strategy, election.trigger, election.assigned) == ("reassign", "reassignment", [4, 3])
    assert (deleted(moving, 1), deleted(moving, 2)) != ([], [])


async def test_replicas_go_their_way_through_the_states(moving: World) -> None:
    await ask(moving, 1, 3)
    await in_sync(moving, 1, 2, 3)
    moves: dict[int, list[str]] = {replica: [] for replica in (2, 3)}
    for event in active(moving).events(ReplicaStateChange):
        if event.replica in moves:
            moves[event.replica].append(event.to_state)
    assert moves[3] == ["NewReplica", "OnlineReplica"]
    assert moves[2][-4:] == [
        "OfflineReplica",
        "ReplicaDeletionStarted",
        "ReplicaDeletionSuccessful",
        "NonExistentReplica",
    ]


@pytest.mark.parametrize(
    ("target", "written", "assignment"),
    [
        pytest.param((1, 2), ["state", "topic"], (1, 2), id="the same: an epoch and the topic"),
        pytest.param((2, 1), ["topic", "state", "topic"], (2, 1), id="another order: the topic comes first too"),
        pytest.param((1,), ["topic", "state", "state", "topic"], (1,), id="fewer: the ISR shrinks"),
    ],
)
async def test_what_needs_no_new_replica_is_done_at_once(
    moving: World, target: tuple[int, ...], written: list[str], assignment: tuple[int, ...]
) -> None:
    assert await ask(moving, *target) is ErrorCode.NONE
    assert (writes(moving), assigned(moving)) == (written, Assignment(replicas=assignment))


async def test_a_cancellation_goes_back_to_the_origin(moving: World) -> None:
    await ask(moving, 3, 4)
    assert await ask(moving, None) is ErrorCode.NONE
    assert assigned(moving) == Assignment(replicas=(1, 2))
    assert (moving.state().leader, moving.state().isr) == (1, (1, 2))
    assert writes(moving) == ["topic", "state", "topic", "state", "topic"]
    assert (len(deleted(moving, 3)), len(deleted(moving, 4)), deleted(moving, 1)) == (1, 1, [])
    assert await ask(moving, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_a_new_wish_takes_the_place_of_the_running_one(moving: World) -> None:
    await ask(moving, 1, 3)
    await in_sync(moving, 1, 2)
    assert await ask(moving, 1, 4) is ErrorCode.NONE
    assert assigned(moving) == Assignment(replicas=(1, 4, 2), adding=(4,), removing=(2,))
    assert len(deleted(moving, 3)) == 1
    await in_sync(moving, 1, 2, 4)
    assert assigned(moving) == Assignment(replicas=(1, 4))


@pytest.mark.parametrize(
    ("target", "error"),
    [
        pytest.param((), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="empty"),
        pytest.param((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="a broker twice"),
        pytest.param((1, -2), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="a negative id"),
        pytest.param((1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="a dead broker"),
        pytest.param((None,), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, id="nothing to cancel"),
    ],
)
async def test_wishes_that_are_refused(moving: World, target: tuple[int, ...], error: ErrorCode) -> None:
    assert await ask(moving, *target) is error
    assert writes(moving) == []


async def test_what_does_not_exist_cannot_be_moved(moving: World) -> None:
    wishes = {("u", 0): Wish(target=(1,)), ("t", 7): Wish(target=(1,)), ("u", 1): Wish(target=None)}
    results = await active(moving).controller.reassign(wishes)
    assert [results[p].error for p in wishes] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ]


async def test_a_topic_that_is_being_deleted_stays_where_it_is(moving: World) -> None:
    moving.transport.silent.update({1, 2})
    moving.server.put("/admin/delete_topics/t")
    await settle()
    assert await ask(moving, 1, 3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_topic_is_deleted_once_its_reassignment_is_over(moving: World) -> None:
    await ask(moving, 1, 3)
    moving.server.put("/admin/delete_topics/t")
    await settle()
    assert topic_path("t") in moving.server.nodes
    await in_sync(moving, 1, 2, 3)
    assert topic_path("t") not in moving.server.nodes


async def test_only_the_controller_reassigns_and_lists(moving: World) -> None:
    with pytest.raises(ControllerMovedError):
        await moving.brokers[1].controller.reassign({T: Wish(target=(1, 3))})
    with pytest.raises(ControllerMovedError):
        await moving.brokers[1].controller.reassignments(None)


async def test_a_new_controller_goes_on_where_the_old_one_was(moving: World) -> None:
    await ask(moving, 1, 3)
    await moving.kill(CONTROLLER)
    assert assigned(moving).is_reassigned
    assert (moving.state().leader_epoch, moving.state().controller_epoch) == (2, 2)
    await in_sync(moving, 1, 2, 3)
    assert assigned(moving) == Assignment(replicas=(1, 3))


async def test_a_new_controller_finishes_what_got_in_sync_meanwhile(moving: World) -> None:
    await ask(moving, 1, 3)
    moving.brokers[CONTROLLER].sessions[0].unwatch_node(moving.path())
    moving.leader_writes_isr((1, 2, 3))
    await moving.kill(CONTROLLER)
    assert assigned(moving) == Assignment(replicas=(1, 3))


async def test_a_target_that_dies_is_waited_for(moving: World) -> None:
    await ask(moving, 1, 3)
    await moving.kill(3)
    await in_sync(moving, 1, 2)
    epoch = moving.state().leader_epoch
    await moving.start(3)
    assert assigned(moving).is_reassigned
    assert moving.state().leader_epoch == epoch + 1
    assert leader_and_isrs(moving, 3)[-1][1:4] == ([1, 3, 2], [3], [2])
    await in_sync(moving, 1, 2, 3)
    assert assigned(moving) == Assignment(replicas=(1, 3))


async def test_new_replicas_of_a_partition_without_a_state_have_no_status(world: World) -> None:
    """Its only broker is dead; Kafka refuses with the assignment written, and elects among the new replicas."""
    await world.start(CONTROLLER, 1, 2, t={0: [9]})
    assert await ask(world, 1, 2) is ErrorCode.UNKNOWN_SERVER_ERROR
    await world.start(3)
    assert (assigned(world).replicas, world.state().leader) == ((1, 2, 9), 1)
    context = active(world).controller.settled_context
    assert context is not None
    assert {broker for _, _, broker in context.replica_status} == {9}
    assert list(of_controller(context)) == []


async def test_new_replicas_that_are_in_sync_before_they_are_started_have_no_status(moving: World) -> None:
    await in_sync(moving, 1, 2, 3)
    assert await ask(moving, 1, 3) is ErrorCode.NONE
    assert assigned(moving) == Assignment(replicas=(1, 3))
    context = active(moving).controller.settled_context
    assert context is not None
    assert context.unstarted == {(*T, 3)}
    assert list(of_controller(context)) == []


async def test_targets_that_are_in_sync_before_they_are_registered_again_are_waited_for(moving: World) -> None:
    await ask(moving, 3)
    await moving.kill(3)
    await in_sync(moving, 1, 2, 3)
    assert assigned(moving).is_reassigned
    assert moving.state().leader == 1
    await moving.start(3)
    assert assigned(moving) == Assignment(replicas=(3,))
    assert (moving.state().leader, moving.state().isr) == (3, (3,))


async def test_the_legacy_znode_is_obeyed_and_emptied(moving: World) -> None:
    await moving.create("u", {0: [1, 2]})
    requested = {T: (1, 3), ("u", 0): (2, 1), ("gone", 0): (1,)}
    moving.server.put(REASSIGN_PARTITIONS, encode_reassignments(requested))
    await settle()
    assert assigned(moving).target == (1, 3)
    assert moving.server.data(REASSIGN_PARTITIONS) == encode_reassignments({T: (1, 3)})
    await in_sync(moving, 1, 2, 3)
    assert REASSIGN_PARTITIONS not in moving.server.nodes
    moving.server.put(REASSIGN_PARTITIONS, encode_reassignments({T: (3, 1)}))
    await settle()
    assert (assigned(moving).replicas, REASSIGN_PARTITIONS in moving.server.nodes) == ((3, 1), False)


async def test_a_request_overrules_the_legacy_znode(moving: World) -> None:
    moving.server.put(REASSIGN_PARTITIONS, encode_reassignments({T: (1, 3)}))
    await settle()
    assert await ask(moving, 1, 4) is ErrorCode.NONE
    assert REASSIGN_PARTITIONS not in moving.server.nodes
    assert assigned(moving).target == (1, 4)


async def test_the_legacy_znode_may_name_a_dead_broker(moving: World) -> None:
    moving.server.put(REASSIGN_PARTITIONS, encode_reassignments({T: (1, 9)}))
    await settle()
    assert assigned(moving) == Assignment(replicas=(1, 9, 2), adding=(9,), removing=(2,))
    assert await ask(moving, None) is ErrorCode.NONE
    assert assigned(moving) == Assignment(replicas=(1, 2))
