"""What the machines refuse: a change that the tables do not allow is logged and changes nothing."""

import logging

import pytest

from harness.broker.controller.transitions import PARTITION_PREVIOUS, REPLICA_PREVIOUS, PartitionStatus, ReplicaStatus
from harness.events import PartitionStateChange, ReplicaStateChange, ZkWrite
from tests.broker.controller.world import World, settle


@pytest.fixture
async def ready(world: World) -> World:
    """A controller with one partition of one topic, all of whose events are forgotten."""
    await world.start(1, t={0: [1]})
    world.brokers[1].log.events.clear()
    world.transport.received.clear()
    return world


@pytest.mark.parametrize("target", list(PartitionStatus))
async def test_partitions(ready: World, target: PartitionStatus, caplog: pytest.LogCaptureFixture) -> None:
    active = ready.brokers[1].active
    illegal = sorted(set(PartitionStatus) - PARTITION_PREVIOUS[target])
    for previous in illegal:
        active._context.partition_status["t", 0] = previous
        with caplog.at_level(logging.ERROR):
            await active._partitions.change([("t", 0)], target)
        await settle()
        assert active._context.partition_status["t", 0] is previous
    assert [message for message in caplog.messages if message.startswith("partition.illegal")] == [
        f"partition.illegal partition=t-0 from={previous} to={target}" for previous in illegal
    ]
    assert not ready.brokers[1].events(PartitionStateChange)
    assert not ready.brokers[1].events(ZkWrite)
    assert not ready.transport.received


@pytest.mark.parametrize("target", list(ReplicaStatus))
async def test_replicas(ready: World, target: ReplicaStatus, caplog: pytest.LogCaptureFixture) -> None:
    active = ready.brokers[1].active
    illegal = sorted(set(ReplicaStatus) - REPLICA_PREVIOUS[target])
    for previous in illegal:
        active._context.replica_status["t", 0, 1] = previous
        with caplog.at_level(logging.ERROR):
            await active._replicas.change([("t", 0, 1)], target)
        await settle()
        assert active._context.replica_status["t", 0, 1] is previous
    assert [message for message in caplog.messages if message.startswith("replica.illegal")] == [
        f"replica.illegal replica=t-0-1 from={previous} to={target}" for previous in illegal
    ]
    assert not ready.brokers[1].events(ReplicaStateChange)
    assert not ready.brokers[1].events(ZkWrite)
    assert not ready.transport.received
