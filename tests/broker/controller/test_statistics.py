import ast
from pathlib import Path

import pytest

from harness.broker.controller import controller
from harness.broker.controller.statistics import EVENT_STATES, ControllerState, ControllerStatistics, EventTimes
from harness.broker.zookeeper.znodes import delete_topic_path
from tests.broker.controller.world import World, settle


def counts(world: World, broker_id: int = 1) -> ControllerStatistics:
    return world.brokers[broker_id].controller.statistics


async def test_whoever_is_not_controller_knows_who_is_and_counts_nothing(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    assert counts(world, 2) == ControllerStatistics(active_controller_id=1)


async def test_partitions_are_counted_by_their_leaders(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 3], 1: [3, 1], 2: [2], 3: [9]})
    assert counts(world) == ControllerStatistics(active_controller_id=1, global_topic_count=1, global_partition_count=3)
    await world.kill(2)
    assert counts(world) == ControllerStatistics(
        active_controller_id=1,
        offline_partition_count=1,
        preferred_replica_imbalance_count=2,
        global_topic_count=1,
        global_partition_count=3,
    )


async def test_topics_that_are_to_go_are_counted_with_their_replicas(world: World) -> None:
    await world.start(1, 2, 3, t={0: [1, 2, 3]})
    await world.kill(3)
    world.transport.silent.add(2)
    world.server.put(delete_topic_path("t"), b"")
    await settle()
    assert counts(world) == ControllerStatistics(
        active_controller_id=1,
        global_topic_count=1,
        global_partition_count=1,
        topics_to_delete_count=1,
        replicas_to_delete_count=2,
        ineligible_topics_to_delete_count=1,
        ineligible_replicas_to_delete_count=1,
    )


async def test_a_preferred_replica_that_is_being_added_counts_once_it_is_in_the_isr(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    context = world.brokers[1].active._context
    known, state = context.topics["t"], context.leadership["t", 0]
    moving = type(known)(partitions={0: (3, 2, 1)}, adding={0: (3,)}, topic_id=known.topic_id)
    context.topics["t"] = moving
    assert counts(world).preferred_replica_imbalance_count == 0
    joined = type(state.state)(leader=2, leader_epoch=0, isr=(2, 1, 3), controller_epoch=1)
    context.leadership["t", 0] = type(state)(state=joined, zk_version=1)
    assert counts(world).preferred_replica_imbalance_count == 1


@pytest.mark.parametrize("unclean", [True, False])
async def test_unclean_elections_are_counted(world: World, unclean: bool) -> None:
    await world.start(1, 2, properties={"unclean.leader.election.enable": str(unclean).lower()})
    await world.create("t", {0: [2, 1]})
    world.leader_writes_isr((2,))
    await world.kill(2)
    assert world.brokers[1].controller.unclean_leader_elections == unclean


def test_the_times_of_events_are_kept_by_what_the_controller_did() -> None:
    times = EventTimes()
    for event, duration_s in (("BrokerChange", 1.0), ("BrokerModifications", 2.0), ("TopicDeletion", 4.0)):
        times.begin(event, 0.5)
        assert times.state is EVENT_STATES[event]
        times.end(duration_s)
    assert times.state is ControllerState.IDLE
    assert (times.queued.count, times.queued.total_s) == (3, 1.5)
    assert {state: (timer.count, timer.total_s) for state, timer in times.processed.items()} == {
        ControllerState.BROKER_CHANGE: (2, 3.0),
        ControllerState.TOPIC_DELETION: (1, 4.0),
    }


def test_every_event_has_its_state() -> None:
    """What is queued in the source by a name is in the table, and the table has nothing else."""
    sources = [ast.parse(path.read_text()) for path in Path(controller.__file__).parent.glob("*.py")]
    sources = [source for source in sources if "EVENT_STATES" not in ast.dump(source)]
    texts = {node.value for source in sources for node in ast.walk(source) if isinstance(node, ast.Constant)}
    assert {text for text in texts if text in EVENT_STATES} == EVENT_STATES.keys()
    calls = [node for source in sources for node in ast.walk(source) if isinstance(node, ast.Call)]
    queued = [
        call.args[0] for call in calls if _name(call) in ("put", "clear_and_put", "enqueue", "_enqueue", "on_watch")
    ]
    named = {argument.value for argument in queued if isinstance(argument, ast.Constant)}
    assert named
    assert named <= EVENT_STATES.keys()


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
