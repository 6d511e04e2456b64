"""A broker says that a log directory has failed: the controller asks which replicas that costs, and acts on it."""

from harness.broker.wire.messages import LeaderAndIsrRequest, UpdateMetadataRequest
from harness.broker.zookeeper.znodes import encode_log_dir_event
from tests.broker.controller.world import World, settle

STORAGE_ERROR = 56
EVENT = "/log_dir_event_notification/log_dir_event_0000000000"


async def fail(world: World, broker_id: int, *partitions: tuple[str, int]) -> None:
    world.transport.leader_errors[broker_id] = dict.fromkeys(partitions, STORAGE_ERROR)
    world.server.put(EVENT, encode_log_dir_event(broker_id))
    await settle()


async def test_leads_move_and_followers_leave_the_isr_of_those_partitions_alone(world: World) -> None:
    await world.start(1, 2, 3, t={0: [2, 1, 3], 1: [1, 2, 3], 2: [2, 3]})
    world.transport.received.clear()
    await fail(world, 2, ("t", 0), ("t", 1))
    assert (world.state("t", 0).leader, world.state("t", 0).isr) == (1, (1, 3))
    assert (world.state("t", 1).leader, world.state("t", 1).isr) == (1, (1, 3))
    assert (world.state("t", 2).leader, world.state("t", 2).isr) == (2, (2, 3))
    request = next(message for message in world.transport.to(2) if isinstance(message, LeaderAndIsrRequest))
    assert [p.partition_index for p in request.topic_states[0].partition_states] == [0, 1, 2]
    update = [m for m in world.transport.to(3) if isinstance(m, UpdateMetadataRequest) and m.topic_states][-1]
    assert {p.partition_index: p.offline_replicas for p in update.topic_states[0].partition_states}[1] == [2]
    assert world.server.names("/log_dir_event_notification") == []


async def test_a_partition_without_another_replica_has_no_leader_until_the_broker_starts_anew(world: World) -> None:
    await world.start(1, 2, t={0: [2]})
    await fail(world, 2, ("t", 0))
    assert (world.state().leader, world.state().isr) == (-1, (2,))
    await world.kill(2)
    world.transport.leader_errors.clear()
    await world.start(2)
    assert world.state().leader == 2


async def test_what_works_again_is_online_again(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    await fail(world, 2, ("t", 0))
    await fail(world, 2)
    assert world.brokers[1].active._context.offline_dirs == {1: set(), 2: set()}


async def test_a_new_controller_drops_old_notifications(world: World) -> None:
    await world.start(1)
    await world.kill(1)
    world.server.put(EVENT, encode_log_dir_event(1))
    await world.start(2)
    assert world.server.names("/log_dir_event_notification") == []


async def test_nonsense_is_removed(world: World) -> None:
    await world.start(1)
    world.server.put(EVENT, b"{")
    await settle()
    assert world.server.names("/log_dir_event_notification") == []
