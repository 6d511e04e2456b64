"""The whole controller over a fake ZooKeeper and a fake network: what becomes of partitions."""

from collections.abc import Mapping
from typing import Any

import pytest

from harness.broker.controller.transitions import ReplicaStatus
from harness.broker.metrics.agreement import of_controller
from harness.broker.wire.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from harness.broker.zookeeper.client import Op, Set
from harness.broker.zookeeper.znodes import PartitionStateZnode, TopicAssignment, encode_isr_change
from harness.events import Election, IsrRemove, PartitionStateChange, ReplicaStateChange, ZkWrite
from tests.broker.controller.world import World, registration_of, settle


def state(leader: int, leader_epoch: int, *isr: int, controller_epoch: int = 1) -> PartitionStateZnode:
    return PartitionStateZnode(leader=leader, leader_epoch=leader_epoch, isr=isr, controller_epoch=controller_epoch)


def sent(world: World, broker_id: int, kind: type[Any]) -> list[Any]:
    return [message for message in world.transport.to(broker_id) if isinstance(message, kind)]


def controller_events(world: World, kind: type[Any]) -> list[Any]:
    (active,) = [broker for broker in world.brokers.values() if broker.controller.is_active]
    return active.events(kind)


def versions(world: World) -> int:
    return world.server.nodes[world.path()].version


async def test_a_new_topic_is_led_by_its_first_replicas_in_epoch_0(world: World) -> None:
    await world.start(1, 2, 3)
    world.transport.received.clear()
    await world.create("t", {0: [2, 3], 1: [3, 1]})
    assert world.state("t", 0) == state(2, 0, 2, 3)
    assert world.state("t", 1) == state(3, 0, 3, 1)
    (request,) = sent(world, 3, LeaderAndIsrRequest)
    assert [(p.partition_index, p.leader, p.is_new) for p in request.topic_states[0].partition_states] == [
        (0, 2, True),
        (1, 3, True),
    ]
    assert [type(message) for message in world.transport.to(2)] == [LeaderAndIsrRequest, UpdateMetadataRequest]
    assert [(e.strategy, e.trigger, e.result.leader) for e in controller_events(world, Election)] == [
        ("initialize", "new_partition", 2),
        ("initialize", "new_partition", 3),
    ]
    moves = [(e.partition, e.from_state, e.to_state) for e in controller_events(world, PartitionStateChange)]
    assert moves == [
        (0, "NonExistentPartition", "NewPartition"),
        (1, "NonExistentPartition", "NewPartition"),
        (0, "NewPartition", "OnlinePartition"),
        (1, "NewPartition", "OnlinePartition"),
    ]


async def test_dead_replicas_are_left_out_of_a_new_partition(world: World) -> None:
    await world.start(1, 2, t={0: [9, 2, 1]})
    assert world.state() == state(2, 0, 2, 1)


async def test_a_replica_that_is_made_while_its_broker_is_down_is_offline_until_it_starts(world: World) -> None:
    await world.start(1, t={0: [2, 1]})
    context = world.brokers[1].active._context
    assert context.replicas_in(ReplicaStatus.OFFLINE, "t") == [("t", 0, 2)]
    assert list(of_controller(context)) == []
    await world.start(2)
    assert context.replicas_in(ReplicaStatus.OFFLINE, "t") == []


async def test_a_new_partition_without_a_live_replica_waits_for_one(world: World) -> None:
    await world.start(1, t={0: [2, 3]})
    assert world.path() not in world.server.nodes
    (failed,) = controller_events(world, Election)
    assert (failed.error, failed.result, failed.assigned) == ("no assigned replica is online", None, [2, 3])
    await world.start(3)
    assert world.state() == state(3, 0, 3)


async def test_a_first_state_whose_answer_was_lost_is_found(world: World) -> None:
    await world.start(1)
    world.server.lose_answer_to = world.path()
    await world.create("t", {0: [1]})
    assert controller_events(world, PartitionStateChange)[-1].to_state == "OnlinePartition"
    assert world.server.lose_answer_to is None


async def test_partitions_that_are_added_come_up_and_the_others_stay_as_they_are(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    world.server.put("/brokers/topics/t", TopicAssignment(partitions={0: (1, 2), 1: (2, 1)}).encode())
    await settle()
    assert (world.state("t", 1), versions(world)) == (state(2, 0, 2, 1), 0)


async def test_a_topic_that_was_removed_by_hand_is_forgotten(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    for path in sorted((p for p in world.server.nodes if p.startswith("/brokers/topics/t")), reverse=True):
        world.server.remove(path)
    await settle()
    await world.kill(2)
    assert not controller_events(world, IsrRemove)
    await world.create("t", {0: [1]})
    assert world.state() == state(1, 0, 1)


@pytest.mark.parametrize(
    ("assignment", "victim", "writes", "expected"),
    [
        pytest.param([2, 1, 3], 2, 1, state(1, 1, 1, 3), id="a leader: one election"),
        pytest.param([1, 2, 3], 2, 1, state(1, 1, 1, 3), id="a follower: one removal from the ISR"),
    ],
)
async def test_a_broker_dies(
    world: World, assignment: list[int], victim: int, writes: int, expected: PartitionStateZnode
) -> None:
    await world.start(1, 2, 3, t={0: assignment})
    await world.kill(victim)
    assert (world.state(), versions(world)) == (expected, writes)
    await world.start(victim)
    assert versions(world) == writes
    partition = sent(world, victim, LeaderAndIsrRequest)[-1].topic_states[0].partition_states[0]
    assert (partition.leader, partition.leader_epoch, partition.zk_version, partition.is_new) == (1, 1, 1, False)


async def test_the_death_of_a_broker_that_held_nothing_is_told_all_the_same(world: World) -> None:
    await world.start(1, 2, 3)
    world.transport.received.clear()
    await world.kill(3)
    for broker_id in (1, 2):
        (request,) = sent(world, broker_id, UpdateMetadataRequest)
        assert [broker.id for broker in request.live_brokers] == [1, 2]


async def test_a_leader_that_was_controller_too_costs_two_writes(world: World) -> None:
    await world.start(1, 2, 3, t={0: [1, 2, 3]})
    await world.kill(1)
    elections = controller_events(world, Election)
    assert (world.state(), versions(world)) == (state(2, 2, 2, 3, controller_epoch=2), 2)
    assert [(e.strategy, e.trigger, e.previous.leader) for e in elections] == [("offline", "failover", -1)]
    removed = controller_events(world, IsrRemove)[0]
    assert (removed.previous.leader, removed.result.leader, removed.result.isr) == (1, -1, [2, 3])


async def test_a_new_controller_sends_live_brokers_before_leaders(world: World) -> None:
    await world.start(1, 2, 3, t={0: [3, 2]})
    world.transport.received.clear()
    await world.kill(1)
    for broker_id in (2, 3):
        kinds = [type(message) for message in world.transport.to(broker_id)]
        assert kinds[0] is UpdateMetadataRequest
        assert LeaderAndIsrRequest in kinds
        assert world.transport.to(broker_id)[0].topic_states == []
        assert [broker.id for broker in world.transport.to(broker_id)[0].live_brokers] == [2, 3]


async def test_the_last_isr_member_stays_and_leads_again_when_it_returns(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    world.leader_writes_isr((2,))
    await world.kill(2)
    assert world.state() == state(-1, 1, 2)
    assert controller_events(world, Election)[-1].error == "no replica is eligible"
    await world.start(2)
    assert world.state() == state(2, 2, 2)


@pytest.mark.parametrize(
    ("broker", "topic", "allowed"),
    [
        pytest.param({}, {}, False, id="by default not"),
        pytest.param({"unclean.leader.election.enable": "true"}, {}, True, id="the broker allows it"),
        pytest.param({}, {"unclean.leader.election.enable": "true"}, True, id="the topic allows it"),
        pytest.param(
            {"unclean.leader.election.enable": "true"},
            {"unclean.leader.election.enable": "false"},
            False,
            id="the topic forbids what the broker allows",
        ),
        pytest.param(
            {"unclean.leader.election.enable": "true"},
            {"unclean.leader.election.enable": "perhaps"},
            False,
            id="what the topic says cannot be read",
        ),
    ],
)
async def test_unclean_election_is_decided_by_what_zookeeper_says_then(
    world: World, broker: Mapping[str, str], topic: Mapping[str, str], allowed: bool
) -> None:
    await world.start(1, 2, 3, properties=broker, t={0: [2, 3, 1]})
    world.leader_writes_isr((2,))
    world.configure("t", topic)
    await world.kill(2)
    election = [e for e in controller_events(world, Election) if e.strategy == "offline"][-1]
    assert election.unclean is allowed
    if allowed:
        assert (world.state(), election.unclean_allowed) == (state(3, 1, 3), True)
    else:
        assert (world.state().leader, world.state().isr) == (-1, (2,))


async def test_allowing_unclean_election_later_gives_leaderless_partitions_a_leader(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    world.leader_writes_isr((2,))
    await world.kill(2)
    world.configure("t", {"unclean.leader.election.enable": "true"})
    world.brokers[1].controller.topic_configured("t", {"unclean.leader.election.enable": False})
    await settle()
    assert world.state() == state(-1, 1, 2)
    world.brokers[1].controller.topic_configured("t", {"unclean.leader.election.enable": True})
    await settle()
    assert world.state() == state(1, 2, 1)
    assert controller_events(world, Election)[-1].trigger == "unclean_enabled"


async def test_an_election_that_lost_to_a_leaders_write_is_decided_anew(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 3, 1]})

    def leader_shrinks_first(op: Op) -> None:
        if isinstance(op, Set) and op.path == world.path():
            world.server.before_write = lambda op: None
            world.leader_writes_isr((2, 1))

    world.server.before_write = leader_shrinks_first
    await world.kill(2)
    assert (world.state(), versions(world)) == (state(1, 1, 1), 2)
    results = [e.result for e in controller_events(world, ZkWrite) if e.path == world.path()]
    assert results == ["ok", "badversion", "ok"]


async def test_a_removal_from_the_isr_that_lost_to_a_leaders_write_is_decided_anew(world: World) -> None:
    await world.start(1, 2, 3, t={0: [1, 2, 3]})

    def leader_shrinks_first(op: Op) -> None:
        if isinstance(op, Set) and op.path == world.path():
            world.server.before_write = lambda op: None
            world.leader_writes_isr((1, 2))

    world.server.before_write = leader_shrinks_first
    await world.kill(2)
    assert (world.state(), versions(world)) == (state(1, 1, 1), 2)


async def test_a_replica_outside_the_isr_dies_without_a_write_but_its_leader_is_told(world: World) -> None:
    await world.start(1, 2, 3, t={0: [1, 2, 3]})
    world.leader_writes_isr((1, 3))
    world.transport.received.clear()
    await world.kill(2)
    assert (world.state(), versions(world)) == (state(1, 0, 1, 3), 1)
    partition = sent(world, 3, LeaderAndIsrRequest)[-1].topic_states[0].partition_states[0]
    assert (partition.leader_epoch, partition.zk_version, partition.isr) == (0, 1, [1, 3])


async def test_a_bounced_broker_fails_and_starts(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    controller = world.brokers[1].sessions[0]
    controller.disconnect()
    world.brokers[2].sessions[0].expire()
    await settle()
    controller.reconnect()
    await settle()
    assert world.state() == state(1, 1, 1)
    assert sent(world, 2, LeaderAndIsrRequest)[-1].broker_epoch == world.brokers[2].broker_epoch
    moves = [(e.replica, e.to_state) for e in controller_events(world, ReplicaStateChange)][-2:]
    assert moves == [(2, "OfflineReplica"), (2, "OnlineReplica")]


async def test_controlled_shutdown_moves_leads_and_leaves_isrs(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 1, 3], 1: [1, 2, 3], 2: [2], 3: [1, 3]})
    world.transport.received.clear()
    remaining = await world.brokers[1].controller.controlled_shutdown(2, world.brokers[2].broker_epoch)
    await settle()
    assert remaining == []
    assert world.state("t", 0) == state(1, 1, 1, 3)
    assert world.state("t", 1) == state(1, 1, 1, 3)
    assert world.state("t", 2) == state(2, 0, 2)
    assert world.state("t", 3) == state(1, 0, 1, 3)
    stopped = [s for r in sent(world, 2, StopReplicaRequest) for t in r.topic_states for s in t.partition_states]
    assert [(s.partition_index, s.delete_partition, s.leader_epoch) for s in stopped] == [(1, False, 0), (1, False, 0)]
    first = sent(world, 2, LeaderAndIsrRequest)[0].topic_states[0].partition_states[0]
    assert (first.partition_index, first.leader) == (0, 1)
    await world.kill(2)
    assert world.state("t", 0) == state(1, 1, 1, 3)
    assert world.state("t", 2) == state(-1, 1, 2)
    await world.start(2)
    assert world.state("t", 2) == state(2, 2, 2)


async def test_controlled_shutdown_names_what_nobody_else_can_lead(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    world.leader_writes_isr((2,))
    assert await world.brokers[1].controller.controlled_shutdown(2, -1) == [("t", 0)]
    assert world.state() == state(2, 0, 2)
    world.leader_writes_isr((2, 1))
    assert await world.brokers[1].controller.controlled_shutdown(2, -1) == []
    assert world.state() == state(1, 1, 1)


async def test_news_of_an_isr_reach_everybody_and_the_notification_goes(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    world.leader_writes_isr((1,))
    world.transport.received.clear()
    world.server.put("/isr_change_notification/isr_change_0000000000", encode_isr_change([("t", 0), ("gone", 1)]))
    world.server.put("/isr_change_notification/isr_change_0000000001", b"nonsense")
    await settle()
    assert world.server.names("/isr_change_notification") == []
    for broker_id in (1, 2):
        (partition,) = sent(world, broker_id, UpdateMetadataRequest)[-1].topic_states[0].partition_states
        assert (partition.isr, partition.zk_version) == ([1], 1)


async def test_a_broker_with_another_endpoint_is_told_of(world: World) -> None:
    await world.start(1, 2)
    world.transport.received.clear()
    world.server.put("/brokers/ids/2", registration_of(2).encode())
    await settle()
    assert world.transport.received == []
    world.server.put("/brokers/ids/2", registration_of(5).encode())
    await settle()
    for broker_id in (1, 2):
        (request,) = sent(world, broker_id, UpdateMetadataRequest)
        assert [end.port for end in request.live_brokers[1].endpoints] == [5, 1]


async def test_every_write_is_told_with_its_result(world: World) -> None:
    await world.start(1, t={0: [1]})
    assert [(w.path, w.op, w.result, w.new_version, w.by) for w in controller_events(world, ZkWrite)] == [
        ("/brokers/topics/t/partitions", "create", "ok", 0, "controller"),
        ("/brokers/topics/t/partitions/0", "create", "ok", 0, "controller"),
        ("/brokers/topics/t/partitions/0/state", "create", "ok", 0, "controller"),
    ]


@pytest.mark.parametrize(
    ("profile", "unclean", "isr"),
    [
        pytest.param("0.8", "true", (), id="0.8 with unclean election: the ISR is emptied"),
        pytest.param("0.8", "false", (2,), id="0.8 without: the last member stays"),
        pytest.param("2.5", "true", (2,), id="2.5: it always stays"),
    ],
)
async def test_the_last_member_of_an_isr_dies(world: World, profile: str, unclean: str, isr: tuple[int, ...]) -> None:
    properties = {"selector.profile": profile, "unclean.leader.election.enable": unclean}
    await world.start(1, 2, properties=properties, t={0: [2]})
    await world.kill(2)
    assert (world.state().leader, world.state().isr) == (-1, isr)
    await world.start(2, properties=properties)
    assert (world.state().leader, world.state().isr) == (2, (2,))
