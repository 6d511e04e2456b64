"""Situations of offsets that transactions commit: pending, stable, fenced by member and by producer."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.broker.wire import messages as m
from tools.side_by_side.group_script import RANGE
from tools.side_by_side.transaction_cluster import GROUP, NEAR, TIMEOUT_MS, until
from tools.side_by_side.transaction_script import Producer, Script
from tools.side_by_side.transaction_states import SHORT_MS, Situation

UNSTABLE = 88
MARKER_S = 0.3
"""Kafka ends the offsets of a transaction a moment after the marker is written, in another thread."""
NEWEST: Mapping[Any, int] = {
    m.FindCoordinatorRequest: 6,
    m.InitProducerIdRequest: 5,
    m.AddPartitionsToTxnRequest: 5,
    m.AddOffsetsToTxnRequest: 4,
    m.EndTxnRequest: 4,
    m.TxnOffsetCommitRequest: 4,
    m.WriteTxnMarkersRequest: 1,
    m.DescribeTransactionsRequest: 0,
    m.ListTransactionsRequest: 1,
    m.DescribeProducersRequest: 0,
}
"""The last version that Kafka 3.9 serves."""


@dataclass(frozen=True, slots=True)
class Member:
    """How a member of the group names itself."""

    member_id: str = ""
    generation: int = -1
    instance: str | None = None


async def add_offsets(s: Script, producer: Producer, *, version: int = 3, group: str | None = None) -> None:
    """AddOffsetsToTxn."""
    request = m.AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=s.topic if group is None else group,
    )
    answer = await s.ask(s.coordinator, request, version)
    s.say(f"add offsets v{version} epoch {producer.epoch}: {answer.error_code}")


async def commit(
    s: Script,
    producer: Producer,
    offset: int,
    member: Member = Member(),
    *,
    version: int = 3,
    group: str | None = None,
    metadata: str = "",
) -> None:
    """TxnOffsetCommit."""
    of_topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    partition = of_topic.TxnOffsetCommitRequestPartition(
        partition_index=NEAR, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=metadata
    )
    request = m.TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=s.topic if group is None else group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance,
        topics=[of_topic(name=s.topic, partitions=[partition])],
    )
    answer = await s.ask(s.group_coordinator, request, version)
    name = "nobody" if not member.member_id else "a stranger" if member.member_id == "stranger" else "the member"
    s.say(
        f"commit offset v{version} {offset} epoch {producer.epoch} by {name} of {member.generation} "
        f"{member.instance}: {answer.topics[0].partitions[0].error_code}"
    )


async def plain_commit(s: Script, offset: int) -> None:
    """OffsetCommit without a transaction."""
    of_topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    partition = of_topic.OffsetCommitRequestPartition(
        partition_index=NEAR, committed_offset=offset, committed_metadata=""
    )
    request = m.OffsetCommitRequest(
        group_id=s.topic, generation_id_or_member_epoch=-1, topics=[of_topic(name=s.topic, partitions=[partition])]
    )
    answer = await s.ask(s.group_coordinator, request, 7)
    s.say(f"plain commit {offset}: {answer.topics[0].partitions[0].error_code}")


async def position(s: Script, *, stable: bool) -> tuple[int, int]:
    """Return error and offset of OffsetFetch."""
    topic = m.OffsetFetchRequest.OffsetFetchRequestTopic(name=s.topic, partition_indexes=[NEAR])
    request = m.OffsetFetchRequest(group_id=s.topic, topics=[topic], require_stable=stable)
    answer = await s.ask(s.group_coordinator, request, 7)
    each = answer.topics[0].partitions[0]
    return each.error_code, each.committed_offset


async def positions(s: Script) -> None:
    """Say what OffsetFetch answers with and without `require_stable`."""
    s.say(f"position: {await position(s, stable=False)} stable: {await position(s, stable=True)}")


async def settled(s: Script) -> None:
    """Wait until no offset is pending, and say the position."""
    await asyncio.sleep(MARKER_S)

    async def is_settled() -> bool:
        return (await position(s, stable=True))[0] != UNSTABLE

    await until(is_settled)
    await positions(s)


async def joined(s: Script, *, instance: str | None = None, member_id: str = "") -> Member:
    """Return the only member of the group, in its next generation."""
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
    request = m.JoinGroupRequest(
        group_id=s.topic,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[protocol(name=name, metadata=metadata) for name, metadata in RANGE],
    )
    answer = await s.ask(s.group_coordinator, request, 3 if instance is None else 5)
    member = Member(answer.member_id, answer.generation_id, instance)
    own = m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"all")
    sync = m.SyncGroupRequest(
        group_id=s.topic,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=instance,
        assignments=[own],
    )
    error = (await s.ask(s.group_coordinator, sync, 3)).error_code
    s.say(f"joined generation {member.generation}: {answer.error_code} {error}")
    return member


async def offsets_committed(s: Script) -> None:
    """Offsets of a transaction count when it is committed."""
    producer = await s.session()
    await add_offsets(s, producer)
    await positions(s)
    await commit(s, producer, 5)
    await positions(s)
    await s.describe(producer)
    await s.end(producer, commit=True, wait=True)
    await settled(s)
    await s.log(producer)


async def offsets_aborted(s: Script) -> None:
    """Offsets of a transaction that is aborted never count."""
    await plain_commit(s, 3)
    producer = await s.session()
    await add_offsets(s, producer)
    await commit(s, producer, 5)
    await positions(s)
    await s.end(producer, commit=False, wait=True)
    await settled(s)


async def offsets_twice(s: Script) -> None:
    """Of two commits in one transaction the last one counts."""
    producer = await s.session()
    await add_offsets(s, producer)
    await add_offsets(s, producer)
    await commit(s, producer, 5)
    await commit(s, producer, 9)
    await commit(s, producer, 7, metadata="word")
    await s.end(producer, commit=True, wait=True)
    await settled(s)


async def plain_offset_while_pending(s: Script) -> None:
    """A plain commit while an offset is pending: the later of the two in the log counts."""
    producer = await s.session()
    await add_offsets(s, producer)
    await commit(s, producer, 5)
    await plain_commit(s, 8)
    await positions(s)
    await s.end(producer, commit=True, wait=True)
    await settled(s)


async def offsets_of_two_producers(s: Script) -> None:
    """Two transactions commit offsets of one group."""
    one, other = await s.session("-1"), await s.session("-2")
    for producer, offset in ((one, 5), (other, 6)):
        await add_offsets(s, producer)
        await commit(s, producer, offset)
    await s.end(other, commit=True, wait=True)
    await asyncio.sleep(MARKER_S)
    await positions(s)
    await s.end(one, commit=True, wait=True)
    await settled(s)


async def offsets_without_adding_them(s: Script) -> None:
    """TxnOffsetCommit without AddOffsetsToTxn."""
    producer = await s.session()
    for version in (0, 3, 4):
        await commit(s, producer, 5, version=version)
    await s.add(producer, NEAR)
    for version in (0, 3, 4):
        await commit(s, producer, 5, version=version)
    await positions(s)


async def offsets_of_zombies(s: Script) -> None:
    """AddOffsetsToTxn and TxnOffsetCommit of another epoch and another producer id."""
    producer = await s.session()
    await s.begin_session(producer)
    other = await s.session("-other")
    wrong = Producer(producer.transactional_id, other.producer_id, 0)
    await add_offsets(s, producer)
    for each in (producer.of_epoch(-1), producer.of_epoch(1), wrong):
        for version in (1, 3):
            await add_offsets(s, each, version=version)
        for version in (1, 3, 4):
            await commit(s, each, 5, version=version)
    await commit(s, producer, 6)
    await commit(s, producer.of_epoch(-1), 7)
    await positions(s)
    await s.end(producer, commit=True, wait=True)
    await settled(s)


async def offsets_of_members(s: Script) -> None:
    """TxnOffsetCommit of a member, a stranger, and an older and a newer generation (KIP-447)."""
    producer = await s.session()
    await add_offsets(s, producer)
    member = await joined(s)
    old = await joined(s, member_id=member.member_id)
    for generation in (old.generation - 1, old.generation, old.generation + 1, -1):
        await commit(s, producer, 5, Member(member.member_id, generation))
    await commit(s, producer, 6, Member("stranger", old.generation))
    await commit(s, producer, 7, Member("", old.generation))
    await commit(s, producer, 8)
    await commit(s, producer, 9, version=2)
    await s.end(producer, commit=True, wait=True)
    await settled(s)


async def offsets_of_instances(s: Script) -> None:
    """TxnOffsetCommit of a static member, and of the one that it has replaced."""
    producer = await s.session()
    await add_offsets(s, producer)
    first = await joined(s, instance="i")
    second = await joined(s, instance="i")
    await commit(s, producer, 5, first)
    await commit(s, producer, 6, second)
    await commit(s, producer, 7, Member(second.member_id, second.generation, "other"))
    await s.end(producer, commit=True, wait=True)
    await settled(s)


async def offsets_of_empty_groups(s: Script) -> None:
    """TxnOffsetCommit with a generation of a group that has no members, or is unknown."""
    producer = await s.session()
    await add_offsets(s, producer)
    await commit(s, producer, 5, Member("stranger", 1))
    await commit(s, producer, 5, Member("", 1))
    member = await joined(s)
    leave = m.LeaveGroupRequest(group_id=s.topic, member_id=member.member_id)
    await s.ask(s.group_coordinator, leave, 1)
    await commit(s, producer, 6, member)
    await commit(s, producer, 7)
    await s.end(producer, commit=True, wait=True)
    await settled(s)


async def no_group(s: Script) -> None:
    """An empty group id."""
    producer = await s.session()
    await add_offsets(s, producer, group="")
    await commit(s, producer, 5, group="")
    await s.describe(producer)
    await s.end(producer, commit=True, wait=True)
    await s.log(producer)


async def offsets_after_a_time_out(s: Script) -> None:
    """Offsets of a transaction that timed out, and a commit that comes after it."""
    producer = await s.session(timeout_ms=SHORT_MS)
    await add_offsets(s, producer)
    await commit(s, producer, 5)
    await s.until_state(producer, "CompleteAbort")
    await settled(s)
    await commit(s, producer, 6)
    await add_offsets(s, producer)
    await settled(s)


async def group_deleted_while_pending(s: Script) -> None:
    """A group is deleted, and its offset, while one is pending."""
    producer = await s.session()
    await plain_commit(s, 3)
    await add_offsets(s, producer)
    await commit(s, producer, 5)
    topic = m.OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition = topic.OffsetDeleteRequestPartition(partition_index=NEAR)
    request = m.OffsetDeleteRequest(group_id=s.topic, topics=[topic(name=s.topic, partitions=[partition])])
    await s.fields(s.group_coordinator, request, 0)
    await positions(s)
    await s.end(producer, commit=True, wait=True)
    await settled(s)


async def fetched_by_groups(s: Script) -> None:
    """`require_stable` in the requests for several groups, and for all topics."""
    producer = await s.session()
    await add_offsets(s, producer)
    await plain_commit(s, 3)
    await commit(s, producer, 5)
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup
    named = [group.OffsetFetchRequestTopics(name=s.topic, partition_indexes=[0, 1])]
    for topics in (named, None):
        for stable in (True, False):
            request = m.OffsetFetchRequest(groups=[group(group_id=s.topic, topics=topics)], require_stable=stable)
            await s.fields(s.group_coordinator, request, 8)
    await s.end(producer, commit=False, wait=True)


async def every_version(s: Script) -> None:
    """The same transactions in each version of each API, field by field."""
    for version in range(max(NEWEST.values()) + 1):
        await _life(s, f"{s.topic}-{version}", version)


async def _life(s: Script, name: str, version: int) -> None:
    """An id is found, a transaction with records and offsets is committed, described and listed."""

    async def say(broker_id: int, request: Any) -> Any:
        return await s.fields(broker_id, request, min(version, NEWEST[type(request)]))

    s.say(f"in version {version}")
    await say(0, m.FindCoordinatorRequest(key=name, key_type=1, coordinator_keys=[name]))
    init = m.InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1
    )
    begun = await say(s.coordinator, init)
    producer = Producer(name, begun.producer_id, begun.producer_epoch)
    own: dict[str, Any] = {
        "transactional_id": name,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
    }
    await say(s.coordinator, _added(s.topic, producer))
    await say(s.coordinator, m.AddOffsetsToTxnRequest(**own, group_id=s.topic))
    await s.produce(producer, "a", version=3 + version)
    of_topic = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    partition = of_topic.TxnOffsetCommitRequestPartition(
        partition_index=NEAR, committed_offset=version, committed_leader_epoch=0, committed_metadata="word"
    )
    topics = [of_topic(name=s.topic, partitions=[partition])]
    await say(s.group_coordinator, m.TxnOffsetCommitRequest(**own, group_id=s.topic, topics=topics))
    if version <= NEWEST[m.DescribeTransactionsRequest]:
        await say(s.coordinator, m.DescribeTransactionsRequest(transactional_ids=[name]))
        wanted = m.DescribeProducersRequest.TopicRequest(name=s.topic, partition_indexes=[NEAR])
        await say(s.leader(NEAR), m.DescribeProducersRequest(topics=[wanted]))
    await say(s.coordinator, m.EndTxnRequest(**own, committed=True))
    await s.completed(producer)
    await say(s.coordinator, m.EndTxnRequest(**own, committed=False))
    await settled(s)


def _added(topic: str, producer: Producer) -> m.AddPartitionsToTxnRequest:
    """Return a request that names the partition in the fields of old and new versions."""
    one = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    old = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return m.AddPartitionsToTxnRequest(
        transactions=[
            one(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                verify_only=False,
                topics=[one.AddPartitionsToTxnTopic(name=topic, partitions=[NEAR])],
            )
        ],
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[old(name=topic, partitions=[NEAR])],
    )


async def found(s: Script) -> None:
    """FindCoordinator for transactional ids, for several at once, and for kinds that there are not."""
    request = m.FindCoordinatorRequest
    await s.fields(0, request(key_type=1, coordinator_keys=[s.topic, s.topic + "-2", ""]), 4)
    await s.fields(0, request(key_type=GROUP, coordinator_keys=[s.topic]), 4)
    await s.fields(0, request(key="", key_type=1), 3)
    await s.fields(0, request(key_type=1, coordinator_keys=[]), 4)


async def advertised(s: Script) -> None:
    """The versions that ApiVersions has of these APIs."""
    answer = await s.ask(s.coordinator, m.ApiVersionsRequest(), 0)
    keys = {int(each.API_KEY) for each in NEWEST}
    s.say(str({each.api_key: (each.min_version, each.max_version) for each in answer.api_keys if each.api_key in keys}))


SITUATIONS: tuple[Situation, ...] = (
    offsets_committed,
    offsets_aborted,
    offsets_twice,
    plain_offset_while_pending,
    offsets_of_two_producers,
    offsets_without_adding_them,
    offsets_of_zombies,
    offsets_of_members,
    offsets_of_instances,
    offsets_of_empty_groups,
    no_group,
    offsets_after_a_time_out,
    group_deleted_while_pending,
    fetched_by_groups,
    every_version,
    found,
    advertised,
)
