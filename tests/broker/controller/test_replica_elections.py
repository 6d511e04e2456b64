"""Requested elections, and the balance of leads."""

import asyncio

import pytest

from harness.broker.controller.context import ControllerContext
from harness.broker.controller.election import ControllerEpoch
from harness.broker.controller.errors import ControllerMovedError
from harness.broker.controller.replica_elections import ElectionKind, imbalanced, refused
from harness.broker.rules import ProtocolRules, rules_with
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.registration import LiveBroker
from harness.broker.zookeeper.znodes import PREFERRED_ELECTION, PartitionStateZnode, TopicAssignment, encode_isr_change
from harness.events import Election
from tests.broker.controller.world import World, registration_of, settle

T = ("t", 0)
PREFERRED, UNCLEAN = ElectionKind.PREFERRED, ElectionKind.UNCLEAN


def context(*led: tuple[int, tuple[int, ...], tuple[int, ...]], live: tuple[int, ...] = (1, 2, 3)) -> ControllerContext:
    """A cluster that knows of one topic: leader, replicas and ISR by partition."""
    known = ControllerContext(epoch=ControllerEpoch(value=1, zk_version=1))
    known.live = {b: LiveBroker(registration=registration_of(b), epoch=b) for b in live}
    known.topics = {"t": TopicAssignment(partitions={n: replicas for n, (_, replicas, _) in enumerate(led)})}
    for number, (leader, _, isr) in enumerate(led):
        state = PartitionStateZnode(leader=leader, leader_epoch=0, isr=isr, controller_epoch=1)
        known.leadership["t", number] = VersionedState(state=state, zk_version=0)
    return known


@pytest.mark.parametrize(
    ("kind", "partition", "leader", "error"),
    [
        pytest.param(PREFERRED, T, 2, None, id="preferred: another one leads"),
        pytest.param(PREFERRED, T, -1, None, id="preferred: no leader"),
        pytest.param(PREFERRED, T, 1, ErrorCode.ELECTION_NOT_NEEDED, id="preferred: it leads already"),
        pytest.param(UNCLEAN, T, -1, None, id="unclean: no leader"),
        pytest.param(UNCLEAN, T, 9, None, id="unclean: the leader is dead"),
        pytest.param(UNCLEAN, T, 3, None, id="unclean: the leader is shutting down"),
        pytest.param(UNCLEAN, T, 2, ErrorCode.ELECTION_NOT_NEEDED, id="unclean: the leader lives"),
        pytest.param(PREFERRED, ("u", 0), 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param(PREFERRED, ("t", 5), 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such partition"),
    ],
)
def test_which_elections_are_held(
    kind: ElectionKind, partition: tuple[str, int], leader: int, error: ErrorCode | None
) -> None:
    known = context((leader, (1, 2), (2,)))
    known.shutting_down = {3}
    refusal = refused(known, partition, kind)
    assert (None if refusal is None else refusal.error) == error


def test_none_is_held_for_a_topic_that_is_being_deleted() -> None:
    known = context((2, (1, 2), (1, 2)))
    known.deleting = {"t"}
    refusal = refused(known, T, PREFERRED)
    assert refusal is not None
    assert refusal.error is ErrorCode.INVALID_TOPIC_EXCEPTION


AWAY, HOME = (2, (1, 2), (1, 2)), (1, (1, 2), (1, 2))


@pytest.mark.parametrize(
    ("known", "percentage", "expected"),
    [
        pytest.param(context(AWAY, HOME), 10, {1: [("t", 0)]}, id="half of the leads are away"),
        pytest.param(context(AWAY, HOME), 50, {}, id="exactly the percentage is not more than it"),
        pytest.param(context(HOME, HOME), 0, {}, id="all are at home"),
        pytest.param(context((2, (1, 2), (2,))), 10, {}, id="the preferred replica is not in sync (KAFKA-9866)"),
        pytest.param(context(AWAY, live=(2,)), 10, {}, id="the preferred replica is dead"),
        pytest.param(
            context(AWAY, (3, (2, 3), (2, 3))), 10, {1: [("t", 0)], 2: [("t", 1)]}, id="each broker by itself"
        ),
    ],
)
def test_what_is_out_of_balance(
    known: ControllerContext, percentage: int, expected: dict[int, list[tuple[str, int]]]
) -> None:
    assert imbalanced(known, percentage, ProtocolRules()) == expected


@pytest.mark.parametrize("busy", ["reassigning", "deleting"])
def test_the_balance_waits_while_something_else_goes_on(busy: str) -> None:
    known = context(AWAY)
    setattr(known, busy, {("x", 0)} if busy == "reassigning" else {"t"})
    assert imbalanced(known, 10, ProtocolRules()) == {}


def test_a_planted_bug_brings_leads_home_to_a_replica_that_is_not_in_sync() -> None:
    known = context((2, (1, 2), (2,)))
    assert imbalanced(known, 10, rules_with(["preferred-not-in-isr"])) == {1: [("t", 0)]}


async def away_from_home(world: World) -> None:
    """Have broker 2 lead what broker 1 should, with both in sync."""
    await world.start(3, 1, 2, t={0: [1, 2]})
    await world.kill(1)
    await world.start(1)
    world.leader_writes_isr((2, 1))
    await settle()
    assert world.state().leader == 2


async def test_a_preferred_election_by_request(world: World) -> None:
    await away_from_home(world)
    controller = world.brokers[3].controller
    results = await controller.elect_leaders([T, ("u", 0)], PREFERRED)
    assert (results[T].leader, results[T].error) == (1, ErrorCode.NONE)
    assert results["u", 0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (world.state().leader, world.state().isr, world.state().leader_epoch) == (1, (2, 1), 2)
    assert (await controller.elect_leaders([T], PREFERRED))[T].error is ErrorCode.ELECTION_NOT_NEEDED
    event = world.brokers[3].events(Election)[-1]
    assert (event.strategy, event.trigger) == ("preferred", "admin")


async def test_a_preferred_replica_out_of_sync_is_not_available(world: World) -> None:
    await away_from_home(world)
    world.leader_writes_isr((2,))
    results = await world.brokers[3].controller.elect_leaders([T], PREFERRED)
    assert results[T].error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert world.state().leader == 2


async def test_an_unclean_election_by_request_overrules_the_configuration(world: World) -> None:
    await world.start(3, 1, 2, t={0: [1, 2]})
    world.leader_writes_isr((1,))
    await world.kill(1)
    assert world.state().leader == -1
    results = await world.brokers[3].controller.elect_leaders([T], UNCLEAN)
    assert (results[T].leader, results[T].error) == (2, ErrorCode.NONE)
    assert (world.state().leader, world.state().isr) == (2, (2,))
    event = world.brokers[3].events(Election)[-1]
    assert (event.unclean, event.unclean_allowed) == (True, True)


async def test_an_unclean_election_with_all_replicas_down_fails(world: World) -> None:
    await world.start(3, 1, t={0: [1]})
    await world.kill(1)
    results = await world.brokers[3].controller.elect_leaders([T], UNCLEAN)
    assert results[T].error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


async def test_only_the_controller_elects(world: World) -> None:
    await away_from_home(world)
    with pytest.raises(ControllerMovedError):
        await world.brokers[2].controller.elect_leaders([T], PREFERRED)


ASKED = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"gone","partition":0}]}'


async def test_a_preferred_election_by_znode_again_and_again(world: World) -> None:
    await away_from_home(world)
    world.server.put(PREFERRED_ELECTION, ASKED)
    await settle()
    assert world.state().leader == 1
    assert PREFERRED_ELECTION not in world.server.nodes
    world.server.put(PREFERRED_ELECTION, b"nonsense")
    await settle()
    assert PREFERRED_ELECTION not in world.server.nodes


async def test_a_new_controller_holds_the_election_that_was_asked_of_the_old_one(world: World) -> None:
    await away_from_home(world)
    world.brokers[3].sessions[0].unwatch_node(PREFERRED_ELECTION)
    world.server.put(PREFERRED_ELECTION, ASKED)
    await world.kill(3)
    assert world.state().leader == 1
    assert PREFERRED_ELECTION not in world.server.nodes


@pytest.mark.parametrize(("enabled", "leader"), [("true", 1), ("false", 2)])
async def test_leads_go_home_by_themselves(world: World, enabled: str, leader: int) -> None:
    properties = {"auto.leader.rebalance.enable": enabled, "leader.imbalance.check.interval.seconds": "30"}
    await world.start(3, 1, 2, properties=properties, t={0: [1, 2]})
    await asyncio.sleep(6)
    await world.kill(1)
    await world.start(1)
    world.leader_writes_isr((2, 1))
    world.server.put("/isr_change_notification/isr_change_0000000000", encode_isr_change([T]))
    await settle()
    assert world.state().leader == 2
    await asyncio.sleep(60)
    assert world.state().leader == leader


async def test_a_controller_that_resigned_does_not_look_at_the_balance(world: World) -> None:
    await away_from_home(world)
    broker = world.brokers.pop(3)
    await broker.controller.stop()
    await asyncio.sleep(600)
    assert world.state().leader == 2
    await broker.stop()
