"""Whole brokers in virtual time: partitions move, leads go home, and faults come in between."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.broker.controller.replica_elections import ElectionKind
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from harness.broker.zookeeper.znodes import PartitionStateZnode, TopicAssignment, encode_config, topic_config_path
from harness.events import Append, EpochBump
from tests.broker.whole_cluster import WholeCluster

_Topic = AlterPartitionReassignmentsRequest.ReassignableTopic
FAST = {"replica.lag.time.max.ms": "2000", "leader.imbalance.check.interval.seconds": "10"}


@asynccontextmanager
async def in_cluster(**properties: str) -> AsyncIterator[WholeCluster]:
    """Four brokers, the first of which is controller and holds nothing of topic t."""
    async with WholeCluster({**FAST, **{k.replace("_", "."): v for k, v in properties.items()}}) as cluster:
        await cluster.start(1, 2, 3, 4)
        assert await cluster.create("t", [2, 3]) == ErrorCode.NONE
        for number in range(20):
            assert await cluster.produce(2, "t", f"value-{number}") == ErrorCode.NONE
        yield cluster


@pytest.fixture
async def cluster() -> AsyncIterator[WholeCluster]:
    async with in_cluster() as cluster:
        yield cluster


async def reassign(cluster: WholeCluster, replicas: list[int] | None, controller_id: int = 1) -> int:
    partition = _Topic.ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=[_Topic(name="t", partitions=[partition])])
    answer = await cluster.ask(controller_id, request, 0)
    return int(answer.error_code or answer.responses[0].partitions[0].error_code)


async def running(cluster: WholeCluster, controller_id: int = 1) -> list[tuple[list[int], list[int], list[int]]]:
    answer = await cluster.ask(controller_id, ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None), 0)
    return [(p.replicas, p.adding_replicas, p.removing_replicas) for t in answer.topics for p in t.partitions]


async def elect(
    cluster: WholeCluster, broker_id: int, *, kind: ElectionKind = ElectionKind.PREFERRED, everything: bool = False
) -> list[tuple[str, int, int]]:
    named = ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])
    request = ElectLeadersRequest(election_type=kind, topic_partitions=None if everything else [named], timeout_ms=5000)
    answer = await cluster.ask(broker_id, request, 1)
    assert answer.error_code == ErrorCode.NONE
    return [
        (r.topic, p.partition_id, p.error_code) for r in answer.replica_election_results for p in r.partition_result
    ]


def state(cluster: WholeCluster) -> PartitionStateZnode:
    return PartitionStateZnode.decode("t", 0, cluster.zookeeper.data("/brokers/topics/t/partitions/0/state"))


def assigned(cluster: WholeCluster) -> tuple[int, ...]:
    znode = TopicAssignment.decode("t", cluster.zookeeper.data("/brokers/topics/t"))
    return () if znode.adding or znode.removing else znode.partitions[0]


async def until_assigned(cluster: WholeCluster, *replicas: int) -> None:
    def seen() -> bool:
        return assigned(cluster) == replicas and set(state(cluster).isr) == set(replicas)

    await cluster.until(seen, f"replicas {replicas}", within_s=60)


async def until_leader(cluster: WholeCluster, leader: int) -> None:
    async def seen() -> bool:
        return state(cluster).leader == leader and await cluster.leader("t", min(cluster.brokers)) == leader

    await cluster.until(seen, f"leader {leader}", within_s=60)


async def kill(cluster: WholeCluster, broker_id: int) -> None:
    await cluster.brokers.pop(broker_id).abandon()


async def test_a_partition_moves_with_all_its_records_and_leaves_nothing_behind(cluster: WholeCluster) -> None:
    assert await reassign(cluster, [4, 3]) == ErrorCode.NONE
    assert await reassign(cluster, [4, 3], controller_id=2) == ErrorCode.NOT_CONTROLLER
    await until_assigned(cluster, 4, 3)
    await until_leader(cluster, 4)
    assert [e.last_offset for e in cluster.of(4, Append)][-1] == 19
    assert await cluster.produce(4, "t", "after") == ErrorCode.NONE
    assert await running(cluster) == []
    await cluster.until(lambda: not cluster.disks[2].exists("t-0"), "the old replica's log is gone")


@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(2, id="the old leader"),
        pytest.param(4, id="the new replica"),
        pytest.param(1, id="the controller"),
        pytest.param(3, id="a replica that stays"),
    ],
)
async def test_a_death_while_a_partition_moves_delays_it_only(cluster: WholeCluster, victim: int) -> None:
    assert await reassign(cluster, [4, 3]) == ErrorCode.NONE
    await kill(cluster, victim)
    await asyncio.sleep(1)
    await cluster.start(victim)
    await until_assigned(cluster, 4, 3)
    leader = state(cluster).leader
    assert leader in (3, 4)
    await until_leader(cluster, leader)
    assert await cluster.produce(leader, "t", "after") == ErrorCode.NONE


async def test_a_move_that_waits_for_a_dead_broker_can_be_cancelled(cluster: WholeCluster) -> None:
    assert await reassign(cluster, [4, 3]) == ErrorCode.NONE
    await kill(cluster, 4)
    assert await running(cluster) == [([4, 3, 2], [4], [2])]
    assert await reassign(cluster, None) == ErrorCode.NONE
    await until_assigned(cluster, 3, 2)  # the origin is what is left without the new ones, in their order
    assert await running(cluster) == []
    assert await reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert await cluster.produce(state(cluster).leader, "t", "after") == ErrorCode.NONE


async def test_an_admin_brings_the_lead_home() -> None:
    async def in_metadata(cluster: WholeCluster) -> bool:
        return {len(t.partitions[0].isr_nodes) for t in (await cluster.metadata(1)).topics} == {2}

    async with in_cluster(auto_leader_rebalance_enable="false") as cluster:
        await kill(cluster, 2)
        await until_leader(cluster, 3)
        await cluster.start(2)
        await until_assigned(cluster, 2, 3)
        await cluster.until(lambda: in_metadata(cluster), "the controller knows of the ISR")
        assert await elect(cluster, 3) == [("t", 0, ErrorCode.NOT_CONTROLLER)]
        assert await elect(cluster, 1) == [("t", 0, ErrorCode.NONE)]
        assert await cluster.leader("t", 1) == 2
        assert await elect(cluster, 1) == [("t", 0, ErrorCode.ELECTION_NOT_NEEDED)]
        assert await elect(cluster, 1, everything=True) == []


async def test_the_lead_goes_home_by_itself(cluster: WholeCluster) -> None:
    def elections(cluster: WholeCluster) -> list[Any]:
        return [event for event in cluster.logs[1].events if event.ev == "election"]

    await kill(cluster, 2)
    await until_leader(cluster, 3)
    await cluster.start(2)
    await until_leader(cluster, 2)
    assert [(e.strategy, e.trigger) for e in elections(cluster)][-1] == ("preferred", "auto")


@pytest.mark.parametrize("how", ["by request", "by configuration"])
async def test_an_unclean_election_ends_a_partition_without_a_leader(cluster: WholeCluster, how: str) -> None:
    await kill(cluster, 3)
    await cluster.until(lambda: state(cluster).isr == (2,), "broker 2 is the ISR")
    await kill(cluster, 2)
    await cluster.start(3)
    await asyncio.sleep(5)
    assert (state(cluster).leader, state(cluster).isr) == (-1, (2,))
    if how == "by request":
        assert await elect(cluster, 1, kind=ElectionKind.UNCLEAN) == [("t", 0, ErrorCode.NONE)]
    else:
        config = encode_config({"unclean.leader.election.enable": "true"})
        cluster.zookeeper.put(topic_config_path("t"), config)
        change = b'{"version":2,"entity_path":"topics/t"}'
        cluster.zookeeper.put("/config/changes/config_change_0000000099", change)
    await until_leader(cluster, 3)
    assert state(cluster).isr == (3,)


async def test_every_step_of_a_move_raises_the_epoch_by_one(cluster: WholeCluster) -> None:
    before = state(cluster).leader_epoch
    await reassign(cluster, [2, 3])
    await until_assigned(cluster, 2, 3)
    assert state(cluster).leader_epoch == before + 1
    (bump,) = cluster.of(1, EpochBump)
    assert (bump.previous.leader_epoch, bump.result.leader_epoch) == (before, before + 1)
