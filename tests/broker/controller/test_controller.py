"""The whole controller over a fake ZooKeeper and a fake network: the elected broker, and when it resigns."""

import asyncio

import pytest

from harness.broker.controller.active import ActiveController
from harness.broker.controller.errors import BrokerNotAvailableError, ControllerMovedError, StaleBrokerEpochError
from harness.broker.zookeeper.znodes import ControllerZnode
from harness.events import (
    BrokerRegistered,
    ControllerElected,
    ControllerEvent,
    ControllerMoved,
    ControllerReady,
    ControllerResigned,
    Fenced,
    ZkSession,
    ZkWrite,
)
from tests.broker.controller.world import World, settle
from tests.raising import raising

LIFE = (ControllerElected, ControllerReady, ControllerResigned, ControllerMoved, BrokerRegistered)


def life(world: World, broker_id: int) -> list[str]:
    return [event.ev for event in world.brokers[broker_id].log.events if isinstance(event, LIFE)]


async def test_the_first_broker_is_controller_and_everybody_knows(world: World) -> None:
    await world.start(1, 2)
    first, second = world.brokers[1].controller, world.brokers[2].controller
    assert (first.is_active, first.controller_id, first.controller_epoch) == (True, 1, 1)
    assert (second.is_active, second.controller_id, second.controller_epoch) == (False, 1, 0)
    assert life(world, 1) == ["broker_registered", "controller_elected", "controller_ready"]
    assert life(world, 2) == ["broker_registered"]


async def test_when_the_controller_dies_another_takes_over_in_the_next_epoch(world: World) -> None:
    await world.start(1, 2, 3)
    await world.kill(1)
    active = [broker.controller for broker in world.brokers.values() if broker.controller.is_active]
    assert [controller.controller_epoch for controller in active] == [2]
    assert {b.controller.controller_id for b in world.brokers.values()} == {active[0].controller_id}


async def test_deleting_the_znode_makes_for_a_new_term_and_changes_no_partition(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    before = world.server.nodes[world.path()].version
    world.server.remove("/controller")
    await settle()
    assert [b.controller.controller_epoch for b in world.brokers.values() if b.controller.is_active] == [2]
    assert life(world, 1)[:4] == ["broker_registered", "controller_elected", "controller_ready", "controller_resigned"]
    assert world.server.nodes[world.path()].version == before


async def test_an_expired_controller_resigns_before_it_has_a_new_session(world: World) -> None:
    await world.start(1, 2)
    broker = world.brokers[1]
    first_epoch = broker.broker_epoch
    broker.sessions[0].expire()
    await settle()
    events = [e for e in broker.log.events if isinstance(e, (*LIFE, ZkSession))]
    lost = next(i for i, e in enumerate(events) if isinstance(e, ZkSession) and e.state == "lost")
    assert [e.state if isinstance(e, ZkSession) else e.ev for e in events[lost:]] == [
        "lost",
        "controller_resigned",
        "connected",
        "reinit",
        "broker_registered",
    ]
    assert broker.broker_epoch > first_epoch
    assert (world.brokers[2].controller.controller_epoch, broker.controller.controller_id) == (2, 2)


async def test_the_new_session_waits_for_the_event_that_is_running(world: World) -> None:
    await world.start(1)
    broker, gate = world.brokers[1], asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    broker.controller._queue.put("slow", slow)
    await settle()
    broker.sessions[0].expire()
    await settle()
    assert len(broker.sessions) == 1
    gate.set()
    await settle()
    assert len(broker.sessions) == 2
    assert broker.controller.is_active


@pytest.mark.parametrize("are_answered", [True, False])
async def test_requests_that_the_queue_drops_unanswered_are_forgotten(world: World, are_answered: bool) -> None:
    await world.start(1)
    controller, gate = world.brokers[1].controller, asyncio.Event()
    controller._queue.put("slow", gate.wait)
    asking = asyncio.create_task(controller.reassignments(None))
    await settle()
    assert controller.forgotten == [], "its event is to come"
    if not are_answered:
        controller._queue._events.clear()
    gate.set()
    await settle()
    assert asking.done() == are_answered
    assert controller.forgotten == ([] if are_answered else ["ListPartitionReassignments"])
    asking.cancel()
    await settle()
    assert controller.forgotten == []


async def test_a_lost_connection_is_no_reason_to_resign_and_hides_nothing(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    world.brokers[1].sessions[0].disconnect()
    await world.kill(2)
    assert world.brokers[1].controller.is_active
    assert world.state().leader == 2
    world.brokers[1].sessions[0].reconnect()
    await settle()
    assert (world.state().leader, world.brokers[1].controller.controller_epoch) == (1, 1)


async def test_a_controller_whose_znode_vanished_while_disconnected_is_elected_anew(world: World) -> None:
    await world.start(1)
    world.brokers[1].sessions[0].disconnect()
    world.server.remove("/controller")
    world.brokers[1].sessions[0].reconnect()
    await settle()
    assert world.brokers[1].controller.controller_epoch == 2


async def test_a_zombie_finds_its_writes_fenced_and_resigns(world: World) -> None:
    await world.start(1, 2)
    zombie = world.brokers[1]
    zombie.sessions[0].unwatch_node("/controller")
    world.server.put("/controller_epoch", b"2")
    world.server.put("/controller", ControllerZnode(broker_id=7, timestamp_ms=0).encode())
    await world.create("t", {0: [1, 2]})
    assert world.path() not in world.server.nodes
    assert zombie.events(ControllerMoved) == [ControllerMoved(controller_epoch=1, event="TopicChange")]
    assert zombie.events(ControllerResigned)
    assert zombie.events(ZkWrite)[-1].result == "fenced"
    assert (zombie.controller.is_active, zombie.controller.controller_id) == (False, 7)
    assert [e.outcome for e in zombie.events(ControllerEvent) if e.name == "TopicChange"] == ["moved"]


async def test_what_is_queued_for_a_controller_that_has_resigned_is_void(world: World) -> None:
    await world.start(1, 2)
    broker, gate = world.brokers[1], asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    broker.controller._queue.put("slow", slow)
    await settle()
    world.server.put("/controller", ControllerZnode(broker_id=7, timestamp_ms=0).encode())
    world.server.put("/controller_epoch", b"2")
    await world.create("t", {0: [1, 2]})
    gate.set()
    await settle()
    assert [e.name for e in broker.events(ControllerEvent)][-3:] == ["slow", "ControllerChange", "TopicChange"]
    assert (broker.events(ControllerMoved), broker.events(ZkWrite)) == ([], [])


@pytest.mark.parametrize("path", ["/brokers/topics/bad", "/brokers/topics/t/partitions/0/state"])
async def test_a_znode_without_sense_keeps_nobody_from_taking_over(world: World, path: str) -> None:
    await world.start(1, t={0: [1]})
    world.server.put(path, b"not JSON")
    await world.start(2)
    await world.kill(1)
    assert life(world, 2) == ["broker_registered", "controller_elected", "controller_ready"]


async def test_a_controller_that_cannot_take_over_gives_the_office_up_and_lets_others_try(world: World) -> None:
    world.server.put("/brokers/ids/9", b"not JSON")
    await world.start(1)
    broker = world.brokers[1]
    assert not broker.controller.is_active
    assert len(broker.events(ControllerElected)) == 1, "not again and again in no time"
    assert broker.events(ControllerResigned)[0].reason == "gave up"
    assert any(write == (broker.sessions[0].session_id, "delete", "/controller") for write in world.server.writes)


async def test_a_stopped_controller_leaves_znode_and_session_to_others(world: World) -> None:
    await world.start(1, 2)
    await world.brokers[1].controller.stop()
    await world.brokers[1].controller.stop()
    assert [e.reason for e in world.brokers[1].events(ControllerResigned)] == ["stopped"]
    assert "/controller" in world.server.nodes
    with pytest.raises(ControllerMovedError, match="any more"):
        await world.brokers[1].controller.controlled_shutdown(2, -1)
    assert world.brokers[1].sessions[0].watched <= {"/controller"}


async def test_resigning_forgets_every_handler_but_the_one_of_the_election(world: World) -> None:
    await world.start(1, 2, t={0: [1, 2]})
    zk = world.brokers[1].sessions[0]
    assert zk.watched > {"/controller", "/brokers/ids", "/brokers/ids/2", "/brokers/topics/t"}
    world.server.put("/controller", ControllerZnode(broker_id=7, timestamp_ms=0).encode())
    await settle()
    assert zk.watched == {"/controller"}


@pytest.mark.parametrize(
    ("receiver", "broker_id", "epoch_delta", "error"),
    [
        pytest.param(2, 2, 0, ControllerMovedError, id="not the controller"),
        pytest.param(1, 9, 0, BrokerNotAvailableError, id="an unknown broker"),
        pytest.param(1, 2, -1, StaleBrokerEpochError, id="an earlier incarnation"),
    ],
)
async def test_controlled_shutdown_is_refused(
    world: World, receiver: int, broker_id: int, epoch_delta: int, error: type[Exception]
) -> None:
    await world.start(1, 2)
    epoch = world.brokers[2].broker_epoch
    with pytest.raises(error):
        await world.brokers[receiver].controller.controlled_shutdown(broker_id, epoch + epoch_delta)
    fenced = world.brokers[1].events(Fenced)
    assert [(f.what, f.got, f.have, f.sender, f.error) for f in fenced] == (
        [("broker_epoch", epoch - 1, epoch, 2, 77)] if error is StaleBrokerEpochError else []
    )


async def test_controlled_shutdown_that_fails_is_answered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.start(1, 2)
    monkeypatch.setattr(ActiveController, "controlled_shutdown", raising(TypeError("bug")))
    with pytest.raises(ControllerMovedError, match="bug"):
        await world.brokers[1].controller.controlled_shutdown(2, -1)


async def test_controlled_shutdown_is_refused_when_the_session_ends(world: World) -> None:
    await world.start(1, 2)
    broker, gate = world.brokers[1], asyncio.Event()

    async def slow() -> None:
        await gate.wait()

    broker.controller._queue.put("slow", slow)
    asking = asyncio.ensure_future(broker.controller.controlled_shutdown(2, -1))
    await settle()
    broker.sessions[0].expire()
    await settle()
    with pytest.raises(ControllerMovedError, match="session"):
        await asking
    gate.set()


async def test_no_partition_is_touched_by_a_controller_of_an_earlier_epoch(world: World) -> None:
    await world.start(1, 2, t={0: [2, 1]})
    world.server.put(world.path(), world.state().encode().replace(b'"controller_epoch":1', b'"controller_epoch":9'))
    await world.kill(2)
    assert (world.state().leader, world.state().leader_epoch) == (2, 0)
