"""What a controller does whose guards are off; the other tests hold what it does with them."""

from harness.broker.rules import rules_with
from harness.broker.zookeeper.znodes import ControllerZnode
from harness.events import ControllerMoved, ControllerResigned, Election, RegistrationsRead, ZkWrite
from tests.broker.controller.world import World, settle


def replace_controller(world: World) -> None:
    """Elect broker 7, which no other broker knows."""
    world.server.put("/controller_epoch", b"2")
    world.server.put("/controller", ControllerZnode(broker_id=7, timestamp_ms=0).encode())


async def test_without_its_fence_a_zombie_creates_partitions(world: World) -> None:
    world.rules = rules_with(["controller-writes-unfenced"])
    await world.start(1, 2)
    world.brokers[1].sessions[0].unwatch_node("/controller")
    replace_controller(world)
    await world.create("t", {0: [1, 2]})
    assert world.state().controller_epoch == 1
    assert world.brokers[1].events(ControllerMoved) == []
    assert world.brokers[1].events(ZkWrite)[-1].result == "ok"


async def test_a_controller_that_never_resigns_is_stopped_by_the_fence_only(world: World) -> None:
    world.rules = rules_with(["controller-never-resigns"])
    await world.start(1, 2)
    replace_controller(world)
    await settle()
    await world.create("t", {0: [1, 2]})
    assert world.path() not in world.server.nodes
    assert world.brokers[1].events(ControllerResigned) == []
    assert world.brokers[1].events(ZkWrite)[-1].result == "fenced"


async def test_a_bounced_broker_that_is_not_noticed_keeps_its_leads(world: World) -> None:
    world.rules = rules_with(["bounced-brokers-ignored"])
    await world.start(1, 2, 3, t={0: [2, 3]})
    world.brokers[1].sessions[0].disconnect()
    world.brokers[2].sessions[0].expire()
    await settle()
    world.brokers[1].sessions[0].reconnect()
    await settle()
    assert world.state().leader == 2
    assert not [e for e in world.brokers[1].events(Election) if e.trigger == "broker_failure"]


async def test_a_config_that_forbids_is_not_looked_at(world: World) -> None:
    world.rules = rules_with(["unclean-ignores-config"])
    await world.start(1, 2, 3, t={0: [2, 3]})
    world.leader_writes_isr((2,))
    await world.kill(2)
    assert (world.state().leader, world.state().isr) == (3, (3,))


async def test_the_last_member_of_an_isr_is_dropped(world: World) -> None:
    world.rules = rules_with(["last-isr-member-dropped"])
    await world.start(1, 2, t={0: [2]})
    await world.kill(2)
    assert (world.state().leader, world.state().isr) == (-1, ())


async def test_a_failover_that_elects_none_leaves_the_partition_without_a_leader(world: World) -> None:
    world.rules = rules_with(["no-election-at-failover"])
    await world.start(1, 2, 3, t={0: [1, 2]})
    await world.kill(1)
    assert (world.state().leader, world.state().isr) == (-1, (2,))


async def test_without_a_broker_that_is_gone_none_is_elected_if_it_counts_as_alive(world: World) -> None:
    world.rules = rules_with(["gone-broker-alive"])
    await world.start(1, 2, 3, t={0: [2, 3]})
    await world.kill(2)
    assert (world.state().leader, world.state().isr) == (-1, (3,))
    read = world.brokers[1].events(RegistrationsRead)[-1]
    assert [broker_id for broker_id, _ in read.registrations] == [1, 3]


async def test_a_broker_that_comes_back_is_shutting_down_for_ever(world: World) -> None:
    world.rules = rules_with(["shutting-down-for-ever"])
    await world.start(1, 2, 3)
    await world.brokers[1].controller.controlled_shutdown(2, world.brokers[2].broker_epoch)
    await world.kill(2)
    await world.start(2)
    await world.create("t", {0: [2]})
    assert world.brokers[1].events(Election)[-1].shutting_down == [2]
    assert world.path() not in world.server.nodes
