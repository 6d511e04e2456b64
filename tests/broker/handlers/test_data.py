"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch as a client or follower sees them."""

import asyncio
import errno
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.broker.log.batch import build_batch, parse_header, recompressed
from harness.broker.log.compression import GZIP, ZSTD
from harness.broker.log.records import Record
from harness.broker.wire.dispatch import CloseConnection
from harness.broker.wire.limits import unlimited
from harness.broker.wire.messages import (
    ApiKey,
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from harness.broker.wire.messages import ProduceResponse as ProduceResponseMessage
from harness.events import Fenced, FetchResponse, OffsetForLeaderEpoch, ProduceResponse
from harness.values import OFFSETS_TOPIC
from tests.broker.replica_cluster import TOPIC, ReplicaCluster, batch, context

_Produced = ProduceRequest.TopicProduceData
_Fetched = FetchRequest.FetchTopic
_Listed = ListOffsetsRequest.ListOffsetsTopic
_Epochs = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

TRANSACTIONAL = 0x10


def compressed(codec: int) -> bytes:
    sent = bytearray(batch("a"))
    return bytes(recompressed(sent, parse_header(sent), codec))


async def produce(
    cluster: ReplicaCluster,
    broker_id: int,
    records: bytes | None,
    *,
    acks: int = -1,
    topic: str = TOPIC,
    partitions: Sequence[int] = (0,),
    timeout_ms: int = 1000,
    version: int = 8,
) -> list[tuple[int, int, int]] | None:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            _Produced(
                name=topic,
                partition_data=[_Produced.PartitionProduceData(index=p, records=records) for p in partitions],
            )
        ],
    )
    response = await cluster[broker_id].data.produce(request, context(ApiKey.PRODUCE, version))
    return (
        None
        if response is None
        else [(p.index, p.error_code, p.base_offset) for t in response.responses for p in t.partition_responses]
    )


async def fetch(
    cluster: ReplicaCluster,
    broker_id: int,
    offset: int,
    *,
    replica: int = -1,
    epoch: int = -1,
    wait_ms: int = 0,
    max_bytes: int = 10_000,
    **options: Any,
) -> list[Any]:
    partitions = options.get("partitions", (0,))
    request = FetchRequest(
        replica_id=replica,
        max_wait_ms=wait_ms,
        min_bytes=options.get("min_bytes", 1),
        max_bytes=options.get("response_bytes", 1 << 20),
        topics=[
            _Fetched(
                topic=TOPIC,
                partitions=[
                    _Fetched.FetchPartition(
                        partition=p,
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=options.get("last_epoch", -1),
                        partition_max_bytes=max_bytes,
                    )
                    for p in partitions
                ],
            )
        ],
    )
    version = options.get("version", 11)
    in_context = replace(context(ApiKey.FETCH, version), room=options.get("room", unlimited))
    response = await cluster[broker_id].data.fetch(request, in_context)
    assert (response.error_code, response.session_id) == (0, 0)
    return [p for t in response.responses for p in t.partitions]


async def list_offset(
    cluster: ReplicaCluster,
    broker_id: int,
    timestamp: int,
    *,
    replica: int = -1,
    epoch: int = -1,
    version: int = 5,
    partitions: Sequence[int] = (0,),
) -> list[tuple[int, int, int, int]]:
    request = ListOffsetsRequest(
        replica_id=replica,
        topics=[
            _Listed(
                name=TOPIC,
                partitions=[
                    _Listed.ListOffsetsPartition(partition_index=p, current_leader_epoch=epoch, timestamp=timestamp)
                    for p in partitions
                ],
            )
        ],
    )
    response = await cluster[broker_id].data.list_offsets(request, context(ApiKey.LIST_OFFSETS, version))
    answers = [p for t in response.topics for p in t.partitions]
    return [(p.error_code, p.offset, p.timestamp, p.leader_epoch) for p in answers]


async def epoch_end(
    cluster: ReplicaCluster, broker_id: int, epoch: int, *, current: int = -1, replica: int = 2
) -> tuple[int, int, int]:
    request = OffsetForLeaderEpochRequest(
        replica_id=replica,
        topics=[
            _Epochs(
                topic=TOPIC,
                partitions=[
                    _Epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
                ],
            )
        ],
    )
    handler = cluster[broker_id].data.offset_for_leader_epoch
    response = await handler(request, context(ApiKey.OFFSET_FOR_LEADER_EPOCH, 3))
    [answer] = [p for t in response.topics for p in t.partitions]
    return answer.error_code, answer.leader_epoch, answer.end_offset


# --- Produce ---


@pytest.mark.parametrize(
    ("broker_id", "records", "options", "error"),
    [
        pytest.param(1, batch("a"), {}, 0, id="to the leader"),
        pytest.param(2, batch("a"), {}, 6, id="to a follower"),
        pytest.param(1, batch("a"), {"partitions": (7,)}, 3, id="to an unknown partition"),
        pytest.param(1, batch("a"), {"acks": 2}, 21, id="with acks that do not exist"),
        pytest.param(1, batch("a"), {"topic": OFFSETS_TOPIC}, 17, id="to the committed offsets"),
        pytest.param(1, b"", {}, 87, id="without records"),
        pytest.param(1, None, {}, 87, id="with null for records"),
        pytest.param(1, batch("a")[:-1] + b"?", {}, 2, id="with a broken batch"),
        pytest.param(
            1,
            build_batch([Record(value=b"a", timestamp_ms=0)], attributes=TRANSACTIONAL),
            {},
            53,
            id="as part of a transaction",
        ),
        pytest.param(
            1,
            build_batch([Record(value=b"a", timestamp_ms=0)], attributes=TRANSACTIONAL)[:-1],
            {},
            87,
            id="a part of a batch of a transaction",
        ),
        pytest.param(1, compressed(ZSTD), {"version": 6}, 76, id="with zstd, of which this version knows nothing"),
        pytest.param(1, compressed(ZSTD), {"version": 7}, 0, id="with zstd"),
        pytest.param(1, compressed(ZSTD)[:-1], {"version": 6}, 87, id="with a part of a batch with zstd"),
        pytest.param(1, compressed(GZIP), {"version": 6}, 0, id="with gzip, which was always there"),
    ],
)
async def test_produce(
    cluster: ReplicaCluster, broker_id: int, records: bytes | None, options: dict[str, Any], error: int
) -> None:
    [(_, code, base)] = await produce(cluster, broker_id, records, **options) or []
    assert (code, base) == (error, 0 if error == 0 else -1)
    assert cluster[1].replica().log.log_end_offset == (1 if error == 0 else 0)


@pytest.mark.parametrize("records", [b"\x00" * 17, batch("a")[:16] + b"\x03"], ids=["its length", "its format"])
async def test_what_can_be_no_batch_refuses_the_whole_request(cluster: ReplicaCluster, records: bytes) -> None:
    partition = _Produced.PartitionProduceData
    topics = [
        _Produced(name=TOPIC, partition_data=[partition(index=0, records=batch("a"))]),
        _Produced(name="unknown", partition_data=[partition(index=0, records=records)]),
    ]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    response = await cluster[1].data.produce(request, context(ApiKey.PRODUCE, 8))
    assert response is not None
    assert [p.error_code for t in response.responses for p in t.partition_responses] == [2, 2]
    assert cluster[1].replica().log.log_end_offset == 0


async def test_a_fetch_answers_unknown_partitions_last(cluster: ReplicaCluster) -> None:
    """As `KafkaApis.handleFetchRequest` does, which finds them first."""
    await cluster.elect(1, partition=1)
    answers = await fetch(cluster, 1, 0, partitions=(0, 7, 1))
    assert [(each.partition_index, each.error_code) for each in answers] == [(0, 0), (1, 0), (7, 3)]


async def test_one_partition_that_fails_does_not_hold_back_the_others(cluster: ReplicaCluster) -> None:
    await cluster.elect(2, partition=1)
    await cluster.elect(1, partition=2)
    answers = await produce(cluster, 1, batch("a"), partitions=(0, 1, 2))
    assert answers == [(0, 0, 0), (1, 6, -1), (2, 0, 0)]


async def test_each_partition_is_answered_by_what_became_of_it_while_waiting(cluster: ReplicaCluster) -> None:
    await cluster.elect(1, partition=1)
    cluster.network.isolate(1)
    waiting = await cluster.begin(produce(cluster, 1, batch("a"), partitions=(0, 1), timeout_ms=500))
    await cluster.elect(2, isr=[2, 3])
    await cluster.elect(1, isr=[1])  # the lead comes back, the records of the first term do not count again
    assert await waiting == [(0, 6, -1), (1, 7, -1)]


async def test_without_acks_there_is_no_answer_and_a_failure_closes_the_connection(cluster: ReplicaCluster) -> None:
    assert await produce(cluster, 1, batch("a"), acks=0) is None
    assert cluster[1].replica().log.log_end_offset == 1
    with pytest.raises(CloseConnection, match="t-0"):
        await produce(cluster, 2, batch("a"), acks=0)


async def test_acks_1_is_answered_before_anybody_else_has_the_record(cluster: ReplicaCluster) -> None:
    assert await produce(cluster, 1, batch("a"), acks=1) == [(0, 0, 0)]
    assert cluster[1].replica().high_watermark == 0


async def test_the_answer_is_on_the_state_change_log(cluster: ReplicaCluster) -> None:
    cluster.network.isolate(1)
    await produce(cluster, 1, batch("a", "b"), timeout_ms=250)
    [event] = cluster[1].of(ProduceResponse)
    assert (event.error, event.base_offset, event.acks, event.high_watermark) == (7, -1, -1, 0)
    assert (event.client, event.correlation_id, event.leader_epoch, event.isr_size) == ("client", 7, 0, 3)
    assert event.duration_ms == pytest.approx(250)


async def test_who_is_sent_away_is_told_where_the_leader_is(cluster: ReplicaCluster) -> None:
    """KIP-951; unknown partitions are not mentioned."""
    topic = _Produced(
        name=TOPIC,
        partition_data=[_Produced.PartitionProduceData(index=index, records=batch("a")) for index in (0, 7)],
    )
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    in_context = replace(context(ApiKey.PRODUCE, 10), listener="REPL")
    response = await cluster[2].data.produce(request, in_context)
    assert response is not None
    response = ProduceResponseMessage.decode(response.encode(version=10), version=10)
    led, unknown = response.responses[0].partition_responses
    assert (led.error_code, led.current_leader.leader_id, led.current_leader.leader_epoch) == (6, 1, 0)
    assert (unknown.error_code, unknown.current_leader) == (3, None)
    assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [(1, "h1", 1)]


# --- Fetch ---


@pytest.mark.parametrize(
    ("compression", "version", "error"),
    [
        pytest.param("zstd", 9, 76, id="not by a client that cannot read it"),
        pytest.param("zstd", 10, 0, id="by a client that can"),
        pytest.param("gzip", 9, 0, id="nothing is asked where it is another codec"),
    ],
)
async def test_what_a_topic_compresses_with_zstd_is_read(compression: str, version: int, error: int) -> None:
    async with ReplicaCluster(compression_type=compression) as cluster:
        await cluster.elect(1)
        await cluster.produce(1, "a")
        [answer] = await fetch(cluster, 1, 0, version=version, wait_ms=1000)
        assert answer.error_code == error
        assert bool(answer.records) == (error == 0)


@pytest.mark.parametrize(
    ("broker_id", "offset", "options", "error", "records"),
    [
        pytest.param(1, 0, {}, 0, 1, id="a consumer reads what is committed"),
        pytest.param(1, 1, {}, 0, 0, id="at the high watermark there is nothing yet"),
        pytest.param(1, 2, {}, 0, 0, id="beyond it, within the log, neither"),
        pytest.param(1, 3, {}, 1, 0, id="beyond the log is out of range"),
        pytest.param(1, -1, {}, 1, 0, id="before the log too"),
        pytest.param(1, 0, {"replica": 2}, 0, 2, id="a follower reads all there is"),
        pytest.param(1, 0, {"replica": 8}, 6, 0, id="a broker that is no replica is sent away"),
        pytest.param(2, 0, {"version": 10}, 6, 0, id="a follower serves no consumer that does not know of that"),
        pytest.param(2, 0, {"replica": 3}, 6, 0, id="nor any follower"),
        pytest.param(1, 0, {"partitions": (5,)}, 3, 0, id="an unknown partition"),
        pytest.param(1, 0, {"epoch": 1}, 0, 1, id="in the current leader epoch"),
        pytest.param(1, 0, {"epoch": 0}, 74, 0, id="in an older leader epoch"),
        pytest.param(1, 0, {"epoch": 2}, 75, 0, id="in a leader epoch that this broker does not know"),
        pytest.param(2, 0, {"epoch": 0}, 74, 0, id="the epoch is looked at before the role"),
    ],
)
async def test_fetch(
    cluster: ReplicaCluster, broker_id: int, offset: int, options: dict[str, Any], error: int, records: int
) -> None:
    """One committed record, one that only the leader has."""
    await cluster.elect(1)
    await cluster.produce(1, "a")
    cluster.network.isolate(1)
    await cluster.produce(1, "b", acks=1)
    [answer] = await fetch(cluster, broker_id, offset, **options)
    assert answer.error_code == error
    assert len(answer.records or b"") == records * len(batch("a"))
    assert answer.high_watermark == answer.last_stable_offset == (-1 if error else 1)
    fenced = [(e.what, e.api, e.got, e.have, e.error) for e in cluster[broker_id].of(Fenced)]
    expected = [("leader_epoch", "Fetch", options.get("epoch"), 1, error)] if error in (74, 75) else []
    assert fenced == expected
    handed_out = cluster[broker_id].of(FetchResponse)
    assert len(handed_out) == (1 if records and "replica" not in options else 0)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "error", "diverging", "records"),
    [
        pytest.param(1, 0, 0, None, 1, id="the same up to there"),
        pytest.param(2, 0, 0, (0, 1), 0, id="more in an epoch than the leader has"),
        pytest.param(2, 1, 0, None, 0, id="all of the current epoch"),
        pytest.param(1, 9, 1, None, 0, id="an epoch that the leader does not know"),
    ],
)
async def test_who_has_read_what_the_leader_has_not_is_told_at_once_where_the_logs_part(
    cluster: ReplicaCluster, offset: int, last_epoch: int, error: int, diverging: tuple[int, int] | None, records: int
) -> None:
    """KIP-595: one record in the first leader epoch, one in the second."""
    await cluster.replicate(1, "a")
    await cluster.elect(1)
    await cluster.replicate(1, "b")
    wait_ms = 0 if diverging is None else 60_000
    [answer] = await fetch(cluster, 1, offset, last_epoch=last_epoch, version=12, wait_ms=wait_ms)
    divergence = answer.diverging_epoch
    assert (answer.error_code, divergence and (divergence.epoch, divergence.end_offset)) == (error, diverging)
    assert len(answer.records or b"") == records * len(batch("a"))


async def test_the_first_batch_may_start_before_the_offset_asked_for(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a", "b", "c")
    [answer] = await fetch(cluster, 1, 2)
    assert parse_header(answer.records).base_offset == 0
    [event] = cluster[1].of(FetchResponse)
    assert (event.fetch_offset, event.last_offset, event.high_watermark) == (2, 2, 3)


async def test_limits_are_for_the_whole_answer_but_one_batch_always_comes() -> None:
    async with ReplicaCluster() as cluster:
        for partition in (0, 1):
            await cluster.elect(1, partition=partition)
            for _ in range(3):
                await cluster.produce(1, "a", partition=partition)
        one = len(batch("a"))
        answers = [
            [len(p.records or b"") // one for p in await fetch(cluster, 1, 0, partitions=(0, 1), **limits)]
            for limits in ({"max_bytes": 1}, {"max_bytes": 2 * one}, {"response_bytes": 4 * one})
        ]
        assert answers == [[1, 0], [2, 2], [3, 1]]


async def test_a_consumer_waits_for_as_many_bytes_as_it_wants_or_as_long(cluster: ReplicaCluster) -> None:
    loop, one = asyncio.get_running_loop(), len(batch("a"))
    waiting = await cluster.begin(fetch(cluster, 1, 0, wait_ms=60_000, min_bytes=2 * one))
    await cluster.produce(1, "a")
    await asyncio.sleep(1)
    assert not waiting.done()
    await cluster.produce(1, "b")
    [answer] = await waiting
    assert len(answer.records) == 2 * one
    began = loop.time()
    [answer] = await fetch(cluster, 1, 2, wait_ms=700)
    assert loop.time() - began == pytest.approx(0.7)
    assert (answer.records or b"") == b""


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param({"version": 10}, 6, id="for a consumer that reads from leaders only"),
        pytest.param({"epoch": 0}, 74, id="for one that reads from any replica, but in this epoch"),
        pytest.param({"replica": 2}, 6, id="for a follower"),
    ],
)
async def test_a_fetch_that_waits_ends_when_the_lead_is_lost(
    cluster: ReplicaCluster, options: dict[str, int], error: int
) -> None:
    waiting = await cluster.begin(fetch(cluster, 1, 0, wait_ms=60_000, **options))
    began = asyncio.get_running_loop().time()
    await cluster.elect(2)
    [answer] = await waiting
    assert (answer.error_code, asyncio.get_running_loop().time()) == (error, began)


async def test_a_follower_that_asks_out_of_range_is_not_taken_to_have_anything() -> None:
    async with ReplicaCluster() as cluster:
        cluster.network.isolate(1)
        await cluster.elect(1)
        await cluster.produce(1, "a", acks=1)
        for replica in (2, 3):
            [answer] = await fetch(cluster, 1, 9, replica=replica)
            assert answer.error_code == 1
        assert cluster[1].replica().high_watermark == 0
        await fetch(cluster, 1, 1, replica=2)
        assert cluster[1].replica().high_watermark == 0
        await fetch(cluster, 1, 1, replica=3)
        assert cluster[1].replica().high_watermark == 1


# --- a topic that is being deleted ---


async def test_a_topic_whose_deletion_is_known_is_unknown_although_its_log_is_still_there(
    cluster: ReplicaCluster,
) -> None:
    await cluster.replicate(1, "a")
    await cluster.forget()
    assert cluster[1].replica().is_leader
    assert await produce(cluster, 1, batch("a")) == [(0, 3, -1)]
    for broker_id, replica in ((1, -1), (1, 2), (2, -1)):
        [answer] = await fetch(cluster, broker_id, 0, replica=replica)
        assert answer.error_code == 3
    await cluster.elect(1)  # of a topic that was made anew
    [answer] = await fetch(cluster, 1, 0)
    assert answer.error_code == 0


# --- ListOffsets ---


@pytest.mark.parametrize(
    ("timestamp", "options", "expected"),
    [
        pytest.param(-2, {}, (0, 0, -1, 0), id="the first offset"),
        pytest.param(-1, {}, (0, 2, -1, 1), id="the last: the high watermark for a consumer"),
        pytest.param(-1, {"replica": 2}, (0, 3, -1, 1), id="the last: the log's end for a follower"),
        pytest.param(1001, {}, (0, 1, 1001, 0), id="the first record at or after a timestamp"),
        pytest.param(5000, {}, (0, -1, -1, -1), id="no record is that late"),
        pytest.param(-1, {"replica": -2}, (0, 3, -1, 1), id="for a debugging tool too"),
        pytest.param(-3, {"version": 7}, (0, 1, 1001, 0), id="the first record that has the largest timestamp"),
        pytest.param(-3, {"version": 6}, (35, -1, -1, -1), id="of which older versions know nothing"),
        pytest.param(-4, {"version": 8}, (0, 0, -1, 0), id="the first offset on this disk"),
        pytest.param(-4, {"version": 7}, (35, -1, -1, -1), id="of which older versions know nothing either"),
        pytest.param(-5, {"version": 9}, (0, -1, -1, -1), id="the last tiered offset: nothing is tiered"),
        pytest.param(-5, {"version": 8}, (35, -1, -1, -1), id="nor of that"),
        pytest.param(-9, {"version": 9}, (35, -1, -1, -1), id="a negative timestamp that means nothing"),
        pytest.param(-1, {"epoch": 0}, (74, -1, -1, -1), id="in an older leader epoch"),
        pytest.param(-1, {"epoch": 2}, (75, -1, -1, -1), id="in a leader epoch that this broker does not know"),
    ],
)
async def test_list_offsets(
    cluster: ReplicaCluster, timestamp: int, options: dict[str, Any], expected: tuple[int, ...]
) -> None:
    """Two committed records of the first leader epoch; in the second one, a record that only the leader has."""
    await cluster.replicate(1, "a", "b")
    await cluster.elect(1)
    cluster.network.isolate(1)
    await cluster.produce(1, "c", acks=1)
    assert await list_offset(cluster, 1, timestamp, **options) == [expected]


async def test_a_timestamp_on_a_disk_that_cannot_be_read_is_a_storage_error(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "a")
    cluster[1].storage.failing = errno.EIO
    assert await list_offset(cluster, 1, 1000) == [(56, -1, -1, -1)]


@pytest.mark.parametrize(("version", "error"), [(5, 78), (4, 5)])
@pytest.mark.parametrize(
    ("timestamp", "replica", "is_refused"),
    [
        pytest.param(-1, -1, True, id="the last offset"),
        pytest.param(1000, -1, True, id="a timestamp of an uncommitted record"),
        pytest.param(-2, -1, False, id="the first offset"),
        pytest.param(-1, 3, False, id="the last offset for a follower"),
    ],
)
async def test_a_new_leader_that_lags_behind_its_own_start_does_not_tell(
    cluster: ReplicaCluster, version: int, error: int, timestamp: int, replica: int, is_refused: bool
) -> None:
    """KIP-207: its predecessor may have told a consumer more."""
    await cluster.produce(1, "a")
    await cluster.elect(2, tell=[2])
    assert cluster[2].replica().high_watermark == 0
    [(code, *_)] = await list_offset(cluster, 2, timestamp, replica=replica, version=version)
    assert code == (error if is_refused else 0)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        pytest.param(-1, (0, 2, -1, 0), id="the end of its log, committed or not"),
        pytest.param(-2, (0, 0, -1, 0), id="its start"),
        pytest.param(-3, (0, 1, 1001, 0), id="its youngest record"),
        pytest.param(1000, (0, 0, 1000, 0), id="the first record of a timestamp"),
    ],
)
async def test_a_follower_tells_a_debugging_tool_what_it_has_and_nobody_else(
    cluster: ReplicaCluster, timestamp: int, expected: tuple[int, ...]
) -> None:
    await cluster.replicate(1, "a", "b")
    for replica, answer in ((-2, expected), (-1, (6, -1, -1, -1)), (3, (6, -1, -1, -1))):
        assert await list_offset(cluster, 2, timestamp, replica=replica, version=7) == [answer]


async def test_the_youngest_record_that_is_not_committed_is_not_told_to_a_consumer(cluster: ReplicaCluster) -> None:
    cluster.network.isolate(1)
    await cluster.produce(1, "a", acks=1)
    for replica, offset in ((-1, -1), (2, 0)):
        [(error, answered, *_)] = await list_offset(cluster, 1, -3, replica=replica, version=7)
        assert (error, answered) == (0, offset)


async def test_a_partition_named_twice_is_refused(cluster: ReplicaCluster) -> None:
    await cluster.elect(1, partition=1)
    answers = await list_offset(cluster, 1, -1, partitions=(0, 1, 0))
    assert [code for code, *_ in answers] == [42, 0, 42]


# --- OffsetForLeaderEpoch ---


@pytest.mark.parametrize(
    ("broker_id", "epoch", "current", "expected"),
    [
        pytest.param(1, 0, 2, (0, 0, 2), id="an old epoch ends where the next begins"),
        pytest.param(1, 1, 2, (0, 0, 2), id="an epoch without a start here: the one before it"),
        pytest.param(1, 2, 2, (0, 2, 3), id="the current epoch ends at the log's end"),
        pytest.param(1, 3, 2, (0, -1, -1), id="a later epoch is unknown"),
        pytest.param(1, 0, -1, (0, 0, 2), id="without a current leader epoch"),
        pytest.param(1, 0, 1, (74, -1, -1), id="in an older leader epoch"),
        pytest.param(1, 0, 3, (75, -1, -1), id="in a leader epoch that this broker does not know"),
        pytest.param(2, 0, 2, (6, -1, -1), id="from a follower"),
    ],
)
async def test_offset_for_leader_epoch(
    cluster: ReplicaCluster, broker_id: int, epoch: int, current: int, expected: tuple[int, ...]
) -> None:
    """Broker 1 leads in the epochs 0 and 2."""
    await cluster.produce(1, "a", "b")
    await cluster.elect(2, tell=[3])
    await cluster.elect(1)
    await cluster.produce(1, "c")
    cluster[broker_id].events.clear()
    assert await epoch_end(cluster, broker_id, epoch, current=current) == expected
    [event] = cluster[broker_id].of(OffsetForLeaderEpoch)
    assert (event.error, event.answer_epoch, event.end_offset) == expected
    assert (event.sender, event.current_leader_epoch, event.asked_epoch) == (2, current, epoch)
    own = (2, 3, [(0, 0), (2, 2)]) if not event.error else (-1, -1, [])
    assert (event.leader_epoch, event.log_end_offset, event.leader_epochs) == own
