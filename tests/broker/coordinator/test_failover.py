"""Whole brokers: a group goes on where its coordinator was lost, and is refused where its log cannot be written."""

import asyncio

from harness.events import CoordinatorLoad
from harness.simulation.transport import MemoryTransport
from harness.values import OFFSETS_TOPIC
from tests.broker.whole_cluster import HOST, WholeCluster, client_port
from tools.side_by_side.group_script import TOPIC, Script

QUICK = {"offsets.topic.replication.factor": "2", "group.initial.rebalance.delay.ms": "0"}


async def led_by(cluster: WholeCluster) -> tuple[Script, int]:
    """Start two brokers, and return a group at its coordinator."""
    await cluster.start(1, 2)
    assert await cluster.create(TOPIC, [1, 2]) == 0
    for broker_id in (1, 2):
        await cluster.until_led(TOPIC, 1, by=broker_id)
    script = Script(MemoryTransport(cluster.network, "client"), HOST, client_port(1), "g")
    await script.stable_pair()
    return script, await cluster.coordinator("g", 1)


async def test_members_go_on_at_the_next_coordinator() -> None:
    async with WholeCluster(QUICK) as cluster:
        script, lost = await led_by(cluster)
        await script.commit(5, "m1", 2)
        await cluster.brokers.pop(lost).abandon()
        survivor = 3 - lost

        async def coordinates() -> bool:
            return await cluster.committed(survivor, "g", TOPIC) == (0, 5)

        await cluster.until(coordinates, "the group at its next coordinator")
        script.goes_on_at(HOST, client_port(survivor))
        for member in ("m1", "m2"):
            await script.heartbeat(member, 2)
        await script.sync("m2", 2)
        await script.commit(6, "m2", 2)
        await script.commit(7, "m2", 1)
        assert script.transcript[1:] == [
            "heartbeat m1 2: 0",
            "heartbeat m2 2: 0",
            "sync m2: 0 3 bytes b'two'",
            "commit 6 by 'm2' of 2: 0",
            "commit 7 by 'm2' of 1: 22",
        ]


async def test_a_generation_that_too_few_replicas_would_hold_is_not_begun() -> None:
    async with WholeCluster({**QUICK, "min.insync.replicas": "2"}) as cluster:
        script, coordinator = await led_by(cluster)
        await cluster.stop(3 - coordinator)
        await script.leave(("m2", None))
        await script.join("m1")
        await script.sync("m1", 3, {"m1": b"all"})
        await script.heartbeat("m1", 3)
        assert script.transcript[2:] == ["sync m1: 15 0 bytes b''", "heartbeat m1 3: 27"]


async def test_a_coordinator_whose_follower_dies_keeps_its_groups_in_the_next_epoch() -> None:
    """As in Kafka: only a new leader loads. No waiting member is answered with NOT_COORDINATOR."""
    async with WholeCluster(QUICK) as cluster:
        script, coordinator = await led_by(cluster)
        third = await script.member()
        await script.until_preparing()
        before = await epoch_of_offsets(cluster, coordinator)
        await cluster.brokers.pop(3 - coordinator).abandon()

        async def leads_on() -> bool:
            return await epoch_of_offsets(cluster, coordinator) > before

        await cluster.until(leads_on, "the next epoch")
        assert not third.done()
        await script.heartbeat("m1", 2)
        joined = await asyncio.gather(script.join("m1", quietly=True), script.join("m2", quietly=True), third)
        assert [(each.error_code, each.generation_id) for each in joined] == [(0, 3)] * 3
        await script.sync("m1", 3, {"m3": b"three"})
        await script.sync("m3", 3)
        await script.commit(5, "m3", 3)
        assert script.transcript == [
            "heartbeat m1 2: 27",
            "sync m1: 0 0 bytes b''",
            "sync m3: 0 5 bytes b'three'",
            "commit 5 by 'm3' of 3: 0",
        ]
        assert await cluster.leader(OFFSETS_TOPIC, coordinator) == coordinator
        assert [load.leader_epoch for load in cluster.of(coordinator, CoordinatorLoad)] == [before]


async def epoch_of_offsets(cluster: WholeCluster, broker_id: int) -> int:
    """Return the leader epoch of `__consumer_offsets`, as one broker sees it."""
    topics = (await cluster.metadata(broker_id)).topics
    return next(int(topic.partitions[0].leader_epoch) for topic in topics if topic.name == OFFSETS_TOPIC)
