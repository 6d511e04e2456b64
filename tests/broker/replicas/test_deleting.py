"""DeleteRecords, and what else moves the start of a log: on the leader first, then on every follower."""

import asyncio

import pytest

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.replicas.deleting import ToDelete
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import DeleteRecordsRequest, DescribeLogDirsRequest, ProduceRequest
from harness.values import OFFSETS_TOPIC
from tests.broker.replica_cluster import TOPIC, ReplicaCluster
from tests.broker.whole_cluster import WholeCluster

NOW_MS = 1_700_000_000_000
_Topic = DeleteRecordsRequest.DeleteRecordsTopic


async def delete(
    cluster: WholeCluster, broker_id: int, offset: int, *, topic: str = "t", timeout_ms: int = 5000
) -> tuple[int, int]:
    """Return error and low watermark of partition 0."""
    deletion = _Topic(name=topic, partitions=[_Topic.DeleteRecordsPartition(partition_index=0, offset=offset)])
    answer = await cluster.ask(broker_id, DeleteRecordsRequest(topics=[deletion], timeout_ms=timeout_ms), 1)
    ((result,),) = (topic.partitions for topic in answer.topics)
    return result.error_code, result.low_watermark


async def produce(cluster: WholeCluster, timestamp_ms: int, key: bytes | None = None) -> int:
    data = ProduceRequest.TopicProduceData
    records = build_batch([Record(key=key, value=b"v" * 100, timestamp_ms=timestamp_ms)])
    partition = data.PartitionProduceData(index=0, records=records)
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data(name="t", partition_data=[partition])])
    return int((await cluster.ask(1, request, 8)).responses[0].partition_responses[0].error_code)


def start_of(cluster: WholeCluster, broker_id: int) -> int:
    partition = cluster.brokers[broker_id].replicas.replicas.get("t", 0)
    assert partition is not None
    return partition.log.log_start_offset


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        pytest.param(2, (ErrorCode.NONE, 2), id="a committed offset"),
        pytest.param(-1, (ErrorCode.NONE, 3), id="all that is committed"),
        pytest.param(0, (ErrorCode.NONE, 0), id="nothing"),
        pytest.param(4, (ErrorCode.OFFSET_OUT_OF_RANGE, -1), id="beyond the high watermark"),
        pytest.param(-2, (ErrorCode.OFFSET_OUT_OF_RANGE, -1), id="a negative offset"),
    ],
)
async def test_every_replica_starts_there_when_the_answer_comes(offset: int, answer: tuple[ErrorCode, int]) -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1, 2, 3, t=[1, 2, 3])
        for _ in range(3):
            await produce(cluster, NOW_MS)
        assert await delete(cluster, 1, offset) == answer
        expected = max(answer[1], 0)
        assert [start_of(cluster, broker_id) for broker_id in (1, 2, 3)] == [expected] * 3


async def test_who_cannot_delete_says_why() -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1, 2, t=[1, 2])
        await cluster.create("compacted", [1], cleanup_policy="compact")
        await cluster.create("both", [1], cleanup_policy="compact,delete")
        assert await delete(cluster, 2, 0) == (ErrorCode.NOT_LEADER_FOR_PARTITION, -1)
        assert await delete(cluster, 1, 0, topic="absent") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert await delete(cluster, 1, 0, topic="compacted") == (ErrorCode.POLICY_VIOLATION, -1)
        assert await delete(cluster, 1, 0, topic="both") == (ErrorCode.NONE, 0)
        assert await delete(cluster, 1, 0, topic=OFFSETS_TOPIC) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


async def test_a_follower_that_does_not_answer_is_waited_for_while_it_counts_as_alive(cluster: ReplicaCluster) -> None:
    for value in "abc":
        await cluster.produce(1, value)
    await asyncio.sleep(1)
    cluster.network.isolate(3)
    deleter = cluster[1].manager.deleter
    (first,) = await deleter.delete([ToDelete((TOPIC, 0), 2)], timeout_s=2)
    assert (first.error, first.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert cluster[2].replica().log.log_start_offset == 2
    waiting = await cluster.begin(deleter.delete([ToDelete((TOPIC, 0), 2)], timeout_s=60))
    cluster.network.down.add(3)
    await cluster.update_metadata()
    cluster.network.down.discard(3)
    (second,) = await waiting
    assert (second.error, second.low_watermark) == (ErrorCode.NONE, 2)


async def test_a_request_that_waits_ends_with_the_lead(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    await asyncio.sleep(1)
    cluster.network.isolate(3)
    waiting = await cluster.begin(cluster[1].manager.deleter.delete([ToDelete((TOPIC, 0), 1)], timeout_s=60))
    await cluster.elect(2)
    (ended,) = await waiting
    assert (ended.error, ended.low_watermark) == (ErrorCode.NOT_LEADER_FOR_PARTITION, -1)


async def test_old_records_go_on_all_replicas_and_come_not_back_with_a_restart() -> None:
    async with WholeCluster({"log.retention.check.interval.ms": "1000"}) as cluster:
        await cluster.start(1, 2)
        await cluster.create("t", [1, 2], retention_ms="60000", segment_bytes="200")
        for timestamp_ms in (NOW_MS - 100_000, NOW_MS - 90_000, NOW_MS):
            assert await produce(cluster, timestamp_ms) == ErrorCode.NONE
        await asyncio.sleep(40)
        assert [start_of(cluster, broker_id) for broker_id in (1, 2)] == [2, 2]
        await cluster.stop(2)
        await cluster.start(2)
        await asyncio.sleep(1)
        assert start_of(cluster, 2) == 2


async def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1)
        await cluster.create("t", [1], cleanup_policy="compact")
        assert await produce(cluster, NOW_MS) == ErrorCode.INVALID_RECORD
        assert await produce(cluster, NOW_MS, key=b"k") == ErrorCode.NONE


async def test_the_data_directory_tells_how_large_its_replicas_are() -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1, 2, t=[1, 2])
        await produce(cluster, NOW_MS)
        ((directory,),) = [(await cluster.ask(1, DescribeLogDirsRequest(topics=None), 1)).results]
        assert (directory.error_code, directory.log_dir) == (ErrorCode.NONE, "/d")
        ((partition,),) = [topic.partitions for topic in directory.topics if topic.name == "t"]
        assert partition.partition_size == len(build_batch([Record(value=b"v" * 100, timestamp_ms=NOW_MS)]))
        cluster.disks[1].space_left = 0
        await produce(cluster, NOW_MS)
        await asyncio.sleep(1)
        ((failed,),) = [(await cluster.ask(1, DescribeLogDirsRequest(topics=None), 1)).results]
        assert (failed.error_code, failed.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
