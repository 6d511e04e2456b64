"""Each guard of replication does something: with its planted bug the same steps end otherwise."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from harness.broker.log.log import InvalidRecords
from harness.broker.replicas.fetch_sessions import FetchSessionError
from harness.broker.replicas.fetching import FetchLimits, PartitionFetch, Read
from harness.broker.replicas.partition import PartitionError
from harness.broker.replicas.replicas import now_s
from harness.broker.rules import PLANTED_BUGS, ProtocolRules, rules_with
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiKey, OffsetForLeaderEpochRequest
from harness.events import IsrResult, Truncate
from harness.simulation.disk import MemoryStorage
from harness.simulation.loop import run
from harness.values import ACKS_ALL
from tests.broker.log.logs import SMALL, batch, from_producer, new_log, opened
from tests.broker.replica_cluster import TOPIC, ReplicaCluster, context

Play = Callable[[ReplicaCluster], Awaitable[Any]]


async def truncations_after_a_leader_change(cluster: ReplicaCluster) -> Any:
    """Followers that have a committed record, but do not know yet that it is."""
    await cluster.elect(1)
    await cluster.produce(1, "a")
    await cluster.elect(1)
    await asyncio.sleep(1)
    return [event.to for broker_id in (2, 3) for event in cluster[broker_id].of(Truncate)]


async def follower_that_missed_an_epoch(cluster: ReplicaCluster) -> Any:
    """Broker 2 lacks the end of epoch 0, and has records of an epoch 1 that no other broker knows."""
    await cluster.elect(3)
    await cluster.produce(3, "a")
    cluster.network.isolate(2)
    for value in "bc":
        await cluster.produce(3, value, acks=1)
    await cluster.elect(2, tell=[2])
    for value in "pqrs":
        await cluster.produce(2, value, acks=1)
    await cluster.elect(3, tell=[1, 3])
    for value in "defg":
        await cluster.produce(3, value, acks=1)
    cluster.network.heal()
    await cluster.tell(2)
    await asyncio.sleep(5)
    return cluster[2].prints() == cluster[3].prints()


async def follower_that_missed_a_leader(cluster: ReplicaCluster) -> Any:
    """Broker 2 has a record that its leader has dropped, as a follower of 3, before it leads again."""
    await cluster.elect(1)
    cluster.network.isolate(3)
    await cluster.produce(1, "a", acks=1)
    await asyncio.sleep(1)
    await cluster.elect(3, tell=[1, 3])
    cluster.network.heal()
    await cluster.produce(3, "b", acks=1)
    await cluster.until(lambda: cluster[1].prints() == cluster[3].prints(), "broker 1 follows")
    await cluster.elect(1)
    await asyncio.sleep(5)
    return cluster[2].prints() == cluster[1].prints()


async def high_watermark_of_a_partition_that_was_not_heard_of(cluster: ReplicaCluster) -> Any:
    """Broker 2 starts, is told of one of its two partitions, and checkpoints."""
    for partition in (0, 1):
        await cluster.elect(1, partition=partition)
        await cluster.produce(1, "a", partition=partition)
        await cluster.settled(partition)
    await cluster[2].manager.stop()
    broker = await cluster.start(2)
    await cluster.tell(2, partition=1)
    await cluster.produce(1, "b", partition=1)
    await cluster.until(lambda: broker.replica(1).high_watermark == 2, "broker 2 follows")
    await broker.manager.stop()
    return broker.logs.read_high_watermarks().get((TOPIC, 0), 0)


async def follower_below_the_epoch_start(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1, isr=[1])
    partition = cluster[1].replica()
    cluster.network.isolate(1)
    partition.epoch_start_offset = partition.high_watermark + 1
    partition.followers[2].log_end_offset = partition.high_watermark
    return partition.wants_to_join(2)


async def isr_while_zookeeper_is_away(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1)
    await cluster.produce(1, "a")
    await cluster[1].zookeeper.close()
    cluster.network.isolate(1)
    await cluster.produce(1, "b", acks=1)
    await asyncio.sleep(10)
    return cluster[1].replica().isr


async def results_of_a_zombie_that_shrinks_its_isr(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1)
    await cluster.produce(1, "a")
    cluster.network.isolate(1)
    await cluster.elect(2, tell=[2, 3])
    await cluster.produce(1, "b", acks=1)
    await asyncio.sleep(10)
    return {event.result for event in cluster[1].of(IsrResult)}


async def high_watermark_of_a_leader_alone(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1)
    cluster.network.isolate(1)
    await cluster.produce(1, "a", acks=1)
    return cluster[1].replica().high_watermark


async def high_watermark_with_a_follower_about_to_join(cluster: ReplicaCluster) -> Any:
    cluster.network.isolate(1)
    await cluster.elect(1, isr=[1])
    cluster[1].replica().follower_fetched(2, 0, now_s())
    await cluster.produce(1, "a", acks=1)
    return cluster[1].replica().high_watermark


async def what_a_leader_alone_writes(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1, isr=[1])
    replica = cluster[1].replica()
    cluster.network.isolate(1)
    with suppress(PartitionError):
        replica.append_as_leader(batch(), acks=ACKS_ALL, min_insync_replicas=2)
    return replica.log.log_end_offset


async def what_a_consumer_gets_of_a_leader_alone(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1)
    cluster.network.isolate(1)
    await cluster.produce(1, "a", acks=1)
    limits = FetchLimits(min_bytes=1, max_bytes=1000, max_wait_s=0)
    (read,) = await cluster[1].manager.fetch_server.fetch(-1, [PartitionFetch((TOPIC, 0), -1, 0, 1000)], limits)
    return bool(read.records)


async def answer_to_an_old_epoch(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1)
    await cluster.elect(1)
    try:
        cluster[1].replica().check_leads(0)
    except PartitionError as refusal:
        return refusal.error.name
    return "served"


async def answer_to_a_follower_of_an_old_epoch(cluster: ReplicaCluster) -> Any:
    await cluster.elect(1)
    await cluster.elect(1)
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    query = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(replica_id=2, topics=[topic(topic=TOPIC, partitions=[query])])
    response = await cluster[1].data.offset_for_leader_epoch(request, context(ApiKey.OFFSET_FOR_LEADER_EPOCH, 3))
    return response.topics[0].partitions[0].error_code


async def answer_to_a_request_of_a_session_that_comes_twice(cluster: ReplicaCluster) -> Any:
    partitions = [PartitionFetch((TOPIC, 0), -1, 0, 1000)]
    sessions = cluster[1].sessions
    session, _ = sessions.begin(0, 0, partitions, privileged=False).answer([Read(partitions[0], ErrorCode.NONE, 0, 0)])
    answers: list[str | list[int]] = []
    for _ in range(2):
        try:
            _, reads = sessions.begin(session, 1, [], privileged=False).answer(
                [Read(partitions[0], ErrorCode.NONE, 1, 0)]
            )
        except FetchSessionError as refusal:
            answers.append(refusal.error.name)
        else:
            answers.append([read.high_watermark for read in reads])
    return answers


@pytest.mark.parametrize(
    ("bug", "play", "right", "wrong"),
    [
        pytest.param("truncate-to-high-watermark", truncations_after_a_leader_change, [], [0, 0], id="truncation"),
        pytest.param("truncation-in-one-round", follower_that_missed_an_epoch, True, False, id="second round"),
        pytest.param("no-truncation-with-same-leader", follower_that_missed_a_leader, True, False, id="same leader"),
        pytest.param(
            "high-watermarks-forgotten", high_watermark_of_a_partition_that_was_not_heard_of, 1, 0, id="checkpoint"
        ),
        pytest.param("isr-join-without-epoch-start", follower_below_the_epoch_start, False, True, id="joining"),
        pytest.param("isr-before-zookeeper", isr_while_zookeeper_is_away, (1, 2, 3), (1,), id="accepted ISR"),
        pytest.param(
            "isr-write-without-version", results_of_a_zombie_that_shrinks_its_isr, {"badversion"}, {"ok"}, id="version"
        ),
        pytest.param("high-watermark-without-isr", high_watermark_of_a_leader_alone, 0, 1, id="committed"),
        pytest.param(
            "high-watermark-ignores-joining", high_watermark_with_a_follower_about_to_join, 0, 1, id="about to join"
        ),
        pytest.param("appends-below-min-isr", what_a_leader_alone_writes, 0, 1, id="few in sync"),
        pytest.param("reads-uncommitted", what_a_consumer_gets_of_a_leader_alone, False, True, id="reading"),
        pytest.param(
            "epoch-answers-unfenced",
            answer_to_a_follower_of_an_old_epoch,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.NONE,
            id="epoch answers",
        ),
        pytest.param("no-leader-epoch-fence", answer_to_an_old_epoch, "FENCED_LEADER_EPOCH", "served", id="fence"),
        pytest.param(
            "no-fetch-session-epoch",
            answer_to_a_request_of_a_session_that_comes_twice,
            [[1], "INVALID_FETCH_SESSION_EPOCH"],
            [[1], []],
            id="session",
        ),
    ],
)
def test_a_guard_of_replication(bug: str, play: Play, right: Any, wrong: Any) -> None:
    async def ended(planted_bugs: list[str]) -> Any:
        async with ReplicaCluster(planted_bugs=planted_bugs) as cluster:
            return await play(cluster)

    assert run(ended([])) == right
    assert run(ended([bug])) == wrong


@pytest.mark.parametrize(
    ("bugs", "end"), [pytest.param([], 1, id="right"), pytest.param(["no-crc-recovery"], 2, id="bug")]
)
def test_a_torn_batch_is_found_after_a_crash(bugs: list[str], end: int) -> None:
    storage = MemoryStorage()
    log = new_log(storage, replace(SMALL, segment_bytes=10_000))
    for _ in range(2):
        log.append_as_leader(batch(), 0)
    storage.files["t-0/00000000000000000000.log"].data[-3:] = b"\0\0\0"
    assert opened(storage, rules=rules_with(bugs))[0].log_end_offset == end


@pytest.mark.parametrize(
    ("bugs", "error"),
    [
        pytest.param([], None, id="right"),
        pytest.param(["one-batch-remembered"], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="bug"),
    ],
)
def test_an_earlier_batch_is_sent_again(bugs: list[str], error: ErrorCode | None) -> None:
    log, _ = opened(MemoryStorage(), rules=rules_with(bugs))
    for sequence in range(2):
        log.append_as_leader(from_producer(sequence), 0)
    refused = None
    try:
        log.append_as_leader(from_producer(0), 0)
    except InvalidRecords as refusal:
        refused = refusal.error_code
    assert (refused, log.log_end_offset) == (error, 2)


def test_every_planted_bug_turns_one_guard_off_and_every_guard_has_one() -> None:
    assert sorted(bug.rule for bug in PLANTED_BUGS) == sorted(ProtocolRules.__dataclass_fields__)
    for bug in PLANTED_BUGS:
        assert getattr(rules_with([bug.name]), bug.rule) is False
