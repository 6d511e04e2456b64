"""A broker whose disk has failed: its replicas are offline, the controller is told, the broker lives on."""

import asyncio

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiKey
from harness.events import ControlReceive, LogDirectoryFailure, ZkWrite
from tests.broker.replica_cluster import ReplicaCluster, context
from tests.broker.whole_cluster import WholeCluster
from tests.raising import raising

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


async def test_whoever_asks_for_an_offline_replica_is_told_so(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    assert cluster[1].manager.disk_failed("d") == 1
    assert cluster[1].manager.replicas.get("t", 0) is None
    assert (await cluster.produce(1, "b")).error is STORAGE_ERROR
    assert await cluster.tell(1) == [STORAGE_ERROR]
    await cluster.elect(2, isr=[2, 3])
    assert await cluster.tell(1) == [STORAGE_ERROR]
    stop = cluster.stop_replica(leader_epoch=5, delete=True)
    answer = await cluster[1].control.stop_replica(stop, context(ApiKey.STOP_REPLICA, 3))
    assert [error.error_code for error in answer.partition_errors] == [STORAGE_ERROR]
    assert (await cluster.produce(2, "c")).error is ErrorCode.NONE
    verdicts = [event.partitions[0].verdict for event in cluster[1].of(ControlReceive)[-3:]]
    assert verdicts == ["storage_error"] * 3


async def test_a_producer_that_waits_is_told_at_once(cluster: ReplicaCluster) -> None:
    cluster.network.isolate(1)
    waiting = await cluster.begin(cluster.produce(1, "a", timeout_s=60))
    assert not waiting.done()
    cluster[1].manager.disk_failed("d")
    assert (await waiting).error is STORAGE_ERROR


async def test_a_partition_whose_log_cannot_be_made_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplicaCluster() as cluster:
        monkeypatch.setattr(cluster[1].logs, "get_or_create", raising(OSError("input/output error")))
        await cluster.elect(1, tell=[1])
        assert await cluster.tell(1) == [STORAGE_ERROR]
        assert (await cluster.produce(1, "a")).error is STORAGE_ERROR


async def test_another_replica_leads_once_a_disk_is_full_and_the_broker_lives_on_without_it_until_its_restart() -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1, 2, 3)
        assert await cluster.create("t", [1, 2, 3]) == ErrorCode.NONE
        cluster.disks[1].space_left = 10
        assert await cluster.produce(1, "t", "does not fit") == STORAGE_ERROR
        cluster.disks[1].space_left = None
        await asyncio.sleep(1)
        assert [event.replicas for event in cluster.of(1, LogDirectoryFailure)] == [1]
        writes = [event for event in cluster.of(1, ZkWrite) if "log_dir_event" in event.path and event.op == "create"]
        assert [event.result for event in writes] == ["ok"]
        leader = await cluster.leader("t", 1)
        assert leader in (2, 3)
        assert await cluster.produce(leader, "t", "goes on") == ErrorCode.NONE
        assert await cluster.produce(1, "t", "still offline") == STORAGE_ERROR
        assert {broker.node_id for broker in (await cluster.metadata(1)).brokers} == {1, 2, 3}
        await cluster.stop(1)
        await cluster.start(1)
        assert await cluster.produce(1, "t", "not here") == ErrorCode.NOT_LEADER_FOR_PARTITION
        await cluster.until(lambda: in_sync(cluster, {1, 2, 3}), "broker 1 is in the ISR again")


async def in_sync(cluster: WholeCluster, isr: set[int]) -> bool:
    (state,) = (await cluster.metadata(2)).topics[0].partitions
    return set(state.isr_nodes) == isr


async def test_without_another_replica_nobody_leads() -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1, 2, t=[1])
        cluster.disks[1].space_left = 10
        assert await cluster.produce(1, "t", "does not fit") == STORAGE_ERROR
        await cluster.until_led("t", -1, by=2)
        await cluster.stop(1)
        cluster.disks[1].space_left = None
        await cluster.start(1)
        assert await cluster.produce(1, "t", "fits") == ErrorCode.NONE


async def test_a_broker_without_disk_reports_its_replica_in_the_answer_to_the_controller() -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1, 2, t=[1, 2])
        cluster.disks[1].space_left = 10
        await cluster.produce(1, "t", "does not fit")
        await asyncio.sleep(1)
        verdicts = {part.verdict for event in cluster.of(1, ControlReceive) for part in event.partitions}
        assert "storage_error" in verdicts


@pytest.mark.parametrize("bug", ["leads-on-without-disk"])
async def test_with_the_planted_bug_a_leader_without_disk_leads_on(bug: str) -> None:
    async with WholeCluster(planted_bugs=(bug,)) as cluster:
        await cluster.start(1, 2, 3, t=[1, 2, 3])
        cluster.disks[1].space_left = 10
        assert await cluster.produce(1, "t", "does not fit") == STORAGE_ERROR
        await asyncio.sleep(1)
        assert cluster.of(1, LogDirectoryFailure) == []
        cluster.disks[1].space_left = None
        assert await cluster.produce(1, "t", "fits") == ErrorCode.NONE
