"""A controller that was replaced: what becomes of its writes, with the fence and without."""

import pytest

from harness.broker.controller.election import ControllerEpoch
from harness.broker.controller.errors import ControllerMovedError
from harness.broker.controller.fenced_writes import FencedWrites
from harness.broker.rules import rules_with
from harness.broker.zookeeper.client import Create
from harness.events import ZkWrite
from tests.broker.controller.world import World

STALE = ControllerEpoch(value=1, zk_version=1)


async def replaced(world: World, *planted_bugs: str) -> FencedWrites:
    """The writes of broker 1, whose term is over."""
    await world.start(1, 2)
    await world.kill(1)
    two = world.brokers[2]
    assert two.controller.controller_epoch == 2
    two.log.events.clear()
    return FencedWrites(two.session, STALE, two.log, rules_with(list(planted_bugs)))


async def test_it_is_refused_and_told_so(world: World) -> None:
    writes = await replaced(world)
    with pytest.raises(ControllerMovedError, match="epoch 1 is not the latest"):
        await writes.write(Create(path="/brokers/topics/t", data=b""))
    assert "/brokers/topics/t" not in world.server.nodes
    assert [event.result for event in world.brokers[2].events(ZkWrite)] == ["fenced"]


async def test_without_the_fence_it_goes_on_writing(world: World) -> None:
    writes = await replaced(world, "controller-writes-unfenced")
    assert await writes.write(Create(path="/brokers/topics/t", data=b"")) == "/brokers/topics/t"
    assert ("ok", 1) in [(event.result, event.controller_epoch) for event in world.brokers[2].events(ZkWrite)]
