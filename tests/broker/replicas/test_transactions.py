"""Transactions over several replicas: markers, committed reads, and questions to the coordinator."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import pytest

from harness.broker.handlers.transaction_logs import TransactionLogHandlers
from harness.broker.log.batch import iter_batches
from harness.broker.log.markers import Marker
from harness.broker.replicas.fetching import FetchLimits, PartitionFetch, Read
from harness.broker.replicas.markers import TransactionEnd
from harness.broker.replicas.offset_lookup import find_offset
from harness.broker.replicas.verifying import TransactionQuestion
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    ApiKey,
    DescribeProducersRequest,
    ProduceRequest,
    WriteTxnMarkersRequest,
)
from harness.broker.wire.sentinels import LATEST
from harness.events import LastStableOffset, MarkerRefused, PartitionVerification, TransactionMarker
from harness.simulation.loop import run
from harness.values import OFFSETS_TOPIC, TopicPartition
from tests.broker.log.logs import in_transaction
from tests.broker.replica_cluster import TOPIC, ReplicaCluster, context

_Data = ProduceRequest.TopicProduceData
Play = Callable[[ReplicaCluster], Awaitable[object]]


@dataclass
class Coordinator:
    """Says of every partition what it was told to say."""

    answer: ErrorCode = ErrorCode.NONE
    questions: list[TransactionQuestion] = field(default_factory=list)
    waits_for: asyncio.Event | None = None

    async def verify(self, question: TransactionQuestion) -> Mapping[TopicPartition, ErrorCode]:
        self.questions.append(question)
        if self.waits_for is not None:
            await self.waits_for.wait()
        return dict.fromkeys(question.partitions, self.answer)


def coordinated(cluster: ReplicaCluster, answer: ErrorCode = ErrorCode.NONE) -> Coordinator:
    """Let all brokers ask one coordinator."""
    coordinator = Coordinator(answer)
    for broker in cluster.brokers.values():
        broker.manager.verifier.coordinators = coordinator
    return coordinator


async def send(
    cluster: ReplicaCluster,
    sequence: int,
    *,
    leader: int = 1,
    producer_id: int = 7,
    transactional_id: str | None = "tx",
    version: int = 9,
    cut: int | None = None,
) -> ErrorCode:
    records = in_transaction(sequence, producer_id=producer_id)[:cut]
    partition = _Data.PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        transactional_id=transactional_id,
        topic_data=[_Data(name=TOPIC, partition_data=[partition])],
    )
    response = await cluster[leader].data.produce(request, context(ApiKey.PRODUCE, version))
    assert response is not None
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


async def end(
    cluster: ReplicaCluster, *, commits: bool, leader: int = 1, producer_id: int = 7, coordinator_epoch: int = 0
) -> ErrorCode:
    marker = Marker(commits, coordinator_epoch)
    ending = TransactionEnd(producer_id=producer_id, producer_epoch=0, marker=marker, partitions=[(TOPIC, 0)])
    errors = await cluster[leader].manager.markers.write(ending, client="coordinator", correlation_id=1)
    return errors[TOPIC, 0]


async def read(
    cluster: ReplicaCluster, offset: int = 0, *, broker: int = 1, committed: bool = True, wait_s: float = 0
) -> Read:
    limits = FetchLimits(
        min_bytes=1, max_bytes=100_000, max_wait_s=wait_s, read_committed=committed, only_from_leader=False
    )
    fetch = PartitionFetch((TOPIC, 0), -1, offset, 100_000)
    (answer,) = await cluster[broker].manager.fetch_server.fetch(-1, [fetch], limits)
    return answer


def offsets(answer: Read) -> list[int]:
    return [header.base_offset for header, _ in iter_batches(answer.records)]


def aborted(answer: Read) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in answer.aborted or ()]


async def test_who_reads_committed_reads_up_to_the_first_open_transaction(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await cluster.produce(1, "a")
    await send(cluster, 0)
    await cluster.produce(1, "b")
    await cluster.settled()
    for broker in (1, 2):
        committed, uncommitted = [await read(cluster, broker=broker, committed=each) for each in (True, False)]
        assert (offsets(committed), offsets(uncommitted)) == ([0], [0, 1, 2])
        assert [each.last_stable_offset for each in (committed, uncommitted)] == [1, 1]
        assert (committed.aborted, uncommitted.aborted) == ([], None)
        replica = cluster[broker].replica()
        ends = [find_offset(replica, LATEST, whole_log=False, read_committed=each).offset for each in (True, False)]
        assert ends == [1, 3]


async def test_of_a_part_of_a_batch_no_coordinator_is_asked(cluster: ReplicaCluster) -> None:
    """So its sequence is not the lowest either, which a later batch would have to begin with."""
    coordinator = coordinated(cluster)
    assert await send(cluster, 0, cut=-1) is ErrorCode.INVALID_RECORD
    assert coordinator.questions == []
    assert await send(cluster, 4) is ErrorCode.NONE


async def test_a_partition_that_is_heard_of_while_the_coordinator_is_asked_stays_unknown(
    cluster: ReplicaCluster,
) -> None:
    """Without a verification its batch would be refused for ever."""
    coordinator = coordinated(cluster)
    coordinator.waits_for = asyncio.Event()
    partitions = [_Data.PartitionProduceData(index=each, records=in_transaction(0)) for each in (0, 1)]
    topics = [_Data(name=TOPIC, partition_data=partitions)]
    request = ProduceRequest(acks=-1, timeout_ms=1000, transactional_id="tx", topic_data=topics)
    producing = await cluster.begin(cluster[1].data.produce(request, context(ApiKey.PRODUCE, 9)))
    await cluster.elect(1, partition=1)
    coordinator.waits_for.set()
    response = await producing
    errors = [each.error_code for each in response.responses[0].partition_responses]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_with_too_little_room_for_a_batch_nothing_is_said_of_aborted_transactions(
    cluster: ReplicaCluster,
) -> None:
    """But with none at all they are said to be none (`ReplicaManager.readFromLog`)."""
    await cluster.produce(1, "a")
    await cluster.elect(1, partition=1)
    await cluster.produce(1, "a", partition=1)
    limits = FetchLimits(min_bytes=1, max_bytes=100_000, max_wait_s=0, read_committed=True)
    for room, aborted_ones in ((1, None), (0, [])):
        asked = [PartitionFetch((TOPIC, 0), -1, 0, 100_000), PartitionFetch((TOPIC, 1), -1, 0, room)]
        _, second = await cluster[1].manager.fetch_server.fetch(-1, asked, limits)
        assert (second.records, second.aborted) == (b"", aborted_ones)
    gone = PartitionFetch((TOPIC, 0), -1, 9, 100, last_fetched_epoch=0)
    [answer] = await cluster[1].manager.fetch_server.fetch(-1, [gone], limits)
    assert answer.diverging is not None
    assert answer.aborted is None, "nor to a reader whose records have gone"


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("broker", [1, 2], ids=["of the leader", "of a follower"])
async def test_a_long_poll_is_answered_when_the_marker_is_committed(
    cluster: ReplicaCluster, commits: bool, broker: int
) -> None:
    coordinated(cluster)
    await send(cluster, 0)
    await cluster.settled()
    waiting = await cluster.begin(read(cluster, broker=broker, wait_s=60))
    assert not waiting.done()
    began = asyncio.get_running_loop().time()
    assert await end(cluster, commits=commits) is ErrorCode.NONE
    answer = await waiting
    assert (offsets(answer), answer.last_stable_offset) == ([0, 1], 2)
    assert aborted(answer) == ([] if commits else [(7, 0)])
    assert asyncio.get_running_loop().time() - began < 2


async def test_a_follower_that_leads_knows_what_was_aborted(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await send(cluster, 0)
    await end(cluster, commits=False)
    await send(cluster, 1)
    await cluster.settled()
    await cluster.elect(2)
    await cluster.settled()
    answer = await read(cluster, broker=2)
    assert (offsets(answer), aborted(answer), answer.last_stable_offset) == ([0, 1], [(7, 0)], 2)
    assert await end(cluster, commits=True, leader=2, coordinator_epoch=1) is ErrorCode.NONE
    assert await end(cluster, commits=True, leader=2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    (refused,) = cluster[2].of(MarkerRefused)
    assert (refused.coordinator_epoch, refused.known_coordinator_epoch, refused.error) == (0, 1, 52)


async def test_followers_fetch_past_the_last_stable_offset_and_say_what_they_wrote(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await send(cluster, 0)
    await send(cluster, 1)
    await end(cluster, commits=False)
    await cluster.settled()
    assert [cluster[each].replica().log.log_end_offset for each in (1, 2, 3)] == [3, 3, 3]
    for broker in (1, 2, 3):
        (line,) = cluster[broker].of(TransactionMarker)
        assert (line.offset, line.result, line.first_offset, line.stable_offset) == (2, "abort", 0, 3)
        last = cluster[broker].of(LastStableOffset)[-1]
        assert (last.new, last.high_watermark, last.first_unstable_offset) == (3, 3, -1)


async def test_a_marker_that_is_not_committed_decides_nothing(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await send(cluster, 0)
    cluster.network.isolate(1)
    waiting = await cluster.begin(end(cluster, commits=True))
    assert (await read(cluster)).last_stable_offset == 0
    cluster.network.heal()
    assert await waiting is ErrorCode.NONE
    assert (await read(cluster)).last_stable_offset == 2


async def test_delete_records_over_an_open_transaction(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await send(cluster, 0)
    await cluster.produce(1, "a")
    await cluster.produce(1, "b")
    partition = cluster[1].replica()
    partition.delete_records(2)
    assert (partition.last_stable_offset, partition.high_watermark) == (2, 3)
    assert cluster[1].of(LastStableOffset)[-1].new == 2
    await end(cluster, commits=True)
    assert partition.last_stable_offset == 4


async def test_a_transaction_that_is_open_for_too_long_is_counted() -> None:
    async with ReplicaCluster(transaction_max_timeout_ms="1000") as cluster:
        await cluster.elect(1)
        coordinated(cluster)
        manager = cluster[1].manager
        await send(cluster, 0)
        written_ms = manager.replicas.all()[0].log.producers[7].timestamp_ms = 1_000_000
        counts = []
        for later_ms in (301_000, 301_001):
            manager.wall_ms = partial(int, written_ms + later_ms)
            counts.append(manager.late_transactions(manager.replicas.all()))
        await end(cluster, commits=False)
        counts.append(manager.late_transactions(manager.replicas.all()))
        assert counts == [0, 1, 0]


# --- the coordinator is asked ---


@pytest.mark.parametrize(
    ("answer", "version", "error"),
    [
        pytest.param(ErrorCode.NONE, 9, ErrorCode.NONE, id="in the transaction"),
        pytest.param(ErrorCode.INVALID_TXN_STATE, 9, ErrorCode.INVALID_TXN_STATE, id="not in it"),
        pytest.param(ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE, id="not in it, by 3.9"),
        pytest.param(ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE, id="known from v11 on"),
        pytest.param(ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH, id="fenced"),
        pytest.param(ErrorCode.NOT_COORDINATOR, 9, ErrorCode.NOT_ENOUGH_REPLICAS, id="asked elsewhere"),
        pytest.param(ErrorCode.CONCURRENT_TRANSACTIONS, 9, ErrorCode.NOT_ENOUGH_REPLICAS, id="ending just now"),
    ],
)
async def test_the_first_batch_of_a_transaction_is_verified(
    cluster: ReplicaCluster, answer: ErrorCode, version: int, error: ErrorCode
) -> None:
    coordinator = coordinated(cluster, answer)
    assert await send(cluster, 0, version=version) is error
    question = TransactionQuestion(transactional_id="tx", producer_id=7, producer_epoch=0, partitions=[(TOPIC, 0)])
    assert coordinator.questions == [question]
    assert [(line.transactional_id, line.error) for line in cluster[1].of(PartitionVerification)] == [("tx", answer)]
    assert cluster[1].replica().log.log_end_offset == (error is ErrorCode.NONE)
    if error is ErrorCode.NONE:
        assert await send(cluster, 1, version=version) is ErrorCode.NONE
        assert len(coordinator.questions) == 1, "the transaction is open"


async def test_without_a_coordinator_producers_try_again(cluster: ReplicaCluster) -> None:
    assert await send(cluster, 0) is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_an_answer_that_a_marker_has_overtaken_admits_nothing(cluster: ReplicaCluster) -> None:
    coordinator = coordinated(cluster)
    coordinator.waits_for = asyncio.Event()
    waiting = await cluster.begin(send(cluster, 0))
    await end(cluster, commits=False)
    coordinator.waits_for.set()
    assert await waiting is ErrorCode.INVALID_TXN_STATE
    assert cluster[1].replica().log.log_end_offset == 1


async def test_records_of_two_producers_in_one_request_are_refused(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await cluster.elect(1, partition=1)
    partitions = [
        _Data.PartitionProduceData(index=number, records=in_transaction(0, producer_id=number)) for number in (0, 1)
    ]
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, transactional_id="tx", topic_data=[_Data(name=TOPIC, partition_data=partitions)]
    )
    response = await cluster[1].data.produce(request, context(ApiKey.PRODUCE, 9))
    assert response is not None
    errors = [partition.error_code for partition in response.responses[0].partition_responses]
    assert errors == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


async def test_a_follower_is_not_asked_for_verification(cluster: ReplicaCluster) -> None:
    coordinator = coordinated(cluster)
    assert await send(cluster, 0, leader=2) is ErrorCode.NOT_LEADER_FOR_PARTITION
    assert coordinator.questions == []


@pytest.mark.parametrize(("enabled", "count"), [("true", 1), ("false", 0)])
async def test_transaction_partition_verification_enable(enabled: str, count: int) -> None:
    async with ReplicaCluster(transaction_partition_verification_enable=enabled) as cluster:
        await cluster.elect(1)
        coordinator = coordinated(cluster)
        assert await send(cluster, 0) is ErrorCode.NONE
        assert len(coordinator.questions) == count


# --- what coordinators and tools ask of a broker ---


def handlers(cluster: ReplicaCluster, broker: int) -> TransactionLogHandlers:
    manager = cluster[broker].manager
    return TransactionLogHandlers(manager.replicas, manager.markers)


async def test_markers_are_written_and_each_partition_is_answered(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await cluster.elect(2, partition=1)
    await send(cluster, 0)
    topic = WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic
    markers = [
        WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_result=producer_id == 7,
            coordinator_epoch=3,
            topics=[topic(name=TOPIC, partition_indexes=partitions), topic(name="gone", partition_indexes=[0])],
        )
        for producer_id, partitions in ((7, [0, 1]), (8, [0]))
    ]
    response = await handlers(cluster, 1).write_markers(
        WriteTxnMarkersRequest(markers=markers), context(ApiKey.WRITE_TXN_MARKERS, 1)
    )
    answers = [
        (marker.producer_id, topic.name, partition.partition_index, partition.error_code)
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    ]
    assert answers == [(7, TOPIC, 0, 0), (7, TOPIC, 1, 6), (7, "gone", 0, 3), (8, TOPIC, 0, 0), (8, "gone", 0, 3)]
    lines = cluster[1].of(TransactionMarker)
    assert [(line.producer_id, line.result, line.first_offset) for line in lines] == [
        (7, "commit", 0),
        (8, "abort", -1),
    ]


async def test_producers_are_described_by_leader_and_follower(cluster: ReplicaCluster) -> None:
    coordinated(cluster)
    await send(cluster, 0, producer_id=8)
    await send(cluster, 0)
    await end(cluster, commits=True, coordinator_epoch=3)
    await cluster.settled()
    topics = [
        DescribeProducersRequest.TopicRequest(name=name, partition_indexes=numbers)
        for name, numbers in ((TOPIC, [0, 9]), ("no/name", [0]))
    ]
    for broker in (1, 2):
        request = DescribeProducersRequest(topics=topics)
        response = await handlers(cluster, broker).describe_producers(request, context(ApiKey.DESCRIBE_PRODUCERS, 0))
        known, unknown, unnamed = [each for topic in response.topics for each in topic.partitions]
        assert (unknown.error_code, unnamed.error_code) == (3, 17)
        assert [
            (each.producer_id, each.last_sequence, each.coordinator_epoch, each.current_txn_start_offset)
            for each in known.active_producers
        ] == [(7, 0, 3, -1), (8, 0, -1, 0)]


async def test_the_group_coordinator_hears_when_offsets_are_decided(cluster: ReplicaCluster) -> None:
    writer = cluster[1].manager.markers
    heard: list[tuple[int, list[int], bool]] = []
    writer.on_offsets_decided(
        lambda producer_id, partitions, commits: heard.append((producer_id, [*partitions], commits))
    )
    ending = TransactionEnd(
        producer_id=7, producer_epoch=0, marker=Marker(True, 0), partitions=[(TOPIC, 0), (OFFSETS_TOPIC, 3)]
    )
    await writer.write(ending, client="c", correlation_id=1)
    assert heard == [], "this broker has no such partition"
    hosted = cluster[1].manager.replicas
    hosted._partitions[OFFSETS_TOPIC, 3] = hosted._partitions[TOPIC, 0]
    await writer.write(ending, client="c", correlation_id=1)
    assert heard == [(7, [3], True)]


# --- planted bugs ---


async def what_an_open_transaction_hides(cluster: ReplicaCluster) -> list[int]:
    await send(cluster, 0)
    return offsets(await read(cluster))


async def what_is_told_of_an_aborted_one(cluster: ReplicaCluster) -> list[tuple[int, int]]:
    await send(cluster, 0)
    await end(cluster, commits=False)
    return aborted(await read(cluster))


async def how_often_the_coordinator_is_asked(cluster: ReplicaCluster) -> int:
    coordinator = coordinated(cluster)
    await send(cluster, 0)
    return len(coordinator.questions)


@pytest.mark.parametrize(
    ("bug", "play", "right", "wrong"),
    [
        pytest.param("reads-open-transactions", what_an_open_transaction_hides, [], [0], id="open"),
        pytest.param("aborted-not-told", what_is_told_of_an_aborted_one, [(7, 0)], [], id="aborted"),
        pytest.param("no-partition-verification", how_often_the_coordinator_is_asked, 1, 0, id="verification"),
    ],
)
def test_a_guard_of_transactions(bug: str, play: Play, right: object, wrong: object) -> None:
    async def ended(planted_bugs: list[str]) -> object:
        async with ReplicaCluster(planted_bugs=planted_bugs) as cluster:
            await cluster.elect(1)
            coordinated(cluster)
            return await play(cluster)

    assert run(ended([])) == right
    assert run(ended([bug])) == wrong


@pytest.mark.parametrize(("timeout_ms", "error"), [("500", ErrorCode.REQUEST_TIMED_OUT), ("9000", ErrorCode.NONE)])
async def test_request_timeout_ms(timeout_ms: str, error: ErrorCode) -> None:
    """`request.timeout.ms` is how long a marker waits for the ISR; here a follower comes back after two seconds."""
    async with ReplicaCluster(request_timeout_ms=timeout_ms, replica_lag_time_max_ms="60000") as cluster:
        await cluster.elect(1)
        cluster.network.isolate(2)
        waiting = await cluster.begin(end(cluster, commits=True))
        await asyncio.sleep(2)
        cluster.network.heal()
        assert await waiting is error
