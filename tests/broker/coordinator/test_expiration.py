"""Offsets expire by KIP-211, and a group of which nothing is left is no more, here and for later coordinators."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from harness.broker.coordinator.coordinator import CommitRequest, GroupCoordinator
from harness.broker.coordinator.group_records import GroupMetadata, StoredMember
from harness.broker.coordinator.records import CommittedOffset, GroupRecord, OffsetKey, OffsetRecord
from harness.broker.coordinator.store import GroupStore
from harness.broker.wire.error_codes import ErrorCode
from harness.events import OffsetRetired
from harness.values import OFFSETS_TOPIC
from tests.broker.coordinator.coordinators import RETENTION_MS, FakeTopic, coordinator_on, leading, settled
from tests.broker.recording_state_log import RecordingStateLog

NOW_MS = 100_000
OLD_MS, YOUNG_MS = NOW_MS - RETENTION_MS, NOW_MS - RETENTION_MS + 1
TO_T = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def committed(at_ms: int, topic: str = "t", expires_ms: int | None = None) -> OffsetRecord:
    value = CommittedOffset(offset=5, timestamp_ms=at_ms, expires_ms=expires_ms)
    return OffsetRecord(log_offset=0, key=OffsetKey(group="g", topic=topic, partition=0), value=value)


def group(since_ms: int | None, subscription: bytes | None = None, protocol_type: str = "consumer") -> GroupRecord:
    member = StoredMember(
        member_id="m",
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=60_000,
        session_timeout_ms=60_000,
        subscription=subscription or b"",
        assignment=b"",
    )
    empty = subscription is None
    value = GroupMetadata(
        protocol_type=protocol_type,
        generation=3,
        protocol=None if empty else "range",
        leader=None if empty else "m",
        state_since_ms=since_ms,
        members=() if empty else (member,),
    )
    return GroupRecord(group="g", value=value)


def holding(*records: OffsetRecord | GroupRecord) -> GroupCoordinator:
    store = GroupStore(partitions=1)
    store.begin_load(0, 1)
    store.finish_load(0, 1, records)
    return coordinator_on(FakeTopic(), store, wall_ms=lambda: NOW_MS)


@pytest.mark.parametrize(
    ("records", "topics"),
    [
        pytest.param([committed(OLD_MS)], None, id="of a group that never had members, from the commit on"),
        pytest.param([committed(YOUNG_MS)], ["t"], id="and not before"),
        pytest.param([group(OLD_MS), committed(NOW_MS)], None, id="of an empty group, since it is empty"),
        pytest.param([group(YOUNG_MS), committed(0)], ["t"], id="and not since the commit"),
        pytest.param([group(None), committed(OLD_MS)], None, id="since the commit, if the group's age is unknown"),
        pytest.param([group(0, TO_T), committed(0)], ["t"], id="none of a topic that members subscribe to"),
        pytest.param([group(0, TO_T), committed(0, "u")], [], id="of another topic, from the commit on"),
        pytest.param([group(0, TO_T), committed(YOUNG_MS, "u")], ["u"], id="and not before that"),
        pytest.param([group(0, b"\xff"), committed(0)], ["t"], id="none where the subscription is unknown"),
        pytest.param([group(0, TO_T, "connect"), committed(0)], ["t"], id="none of members that are no consumers"),
        pytest.param([committed(0, expires_ms=NOW_MS)], None, id="when the client said"),
        pytest.param([committed(0, expires_ms=NOW_MS + 1)], ["t"], id="and not before the client said"),
        pytest.param([group(NOW_MS)], None, id="an empty group without offsets is over at once"),
        pytest.param([group(0, TO_T)], [], id="a group with members is not"),
    ],
)
async def test_what_expires(records: list[OffsetRecord | GroupRecord], topics: list[str] | None) -> None:
    coordinating = holding(*records)
    await coordinating.expiration.expire()
    known = coordinating.store.group("g")
    assert (None if known is None else list(coordinating.store.offsets_of("g"))) == topics


@pytest.mark.parametrize("partitions", [[], [("t", 0)]])
async def test_a_group_ends_with_its_last_offset_and_not_when_none_is_to_be_deleted(
    partitions: list[tuple[str, int]],
) -> None:
    """`GroupCoordinator.handleDeleteOffsets`."""
    coordinating = holding(committed(NOW_MS) if partitions else group(NOW_MS))
    error, errors = await coordinating.expiration.delete_offsets("g", partitions)
    assert (error, errors) == (ErrorCode.NONE, dict.fromkeys(partitions, ErrorCode.NONE))
    assert (coordinating.store.group("g") is None) == bool(partitions)


async def test_what_was_committed_anew_while_another_group_expired_stays() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    coordinating.expiration.wall_ms = lambda: NOW_MS
    for name in ("a", "g"):
        await coordinating.commit(replace(committing(5), group=name))
    topic.gate = asyncio.Event()
    expiry = asyncio.create_task(coordinating.expiration.expire())
    await asyncio.sleep(0)
    coordinating.leadership_changed([], [(OFFSETS_TOPIC, 0, 4)])
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 5)], [])
    await settled(coordinating)
    young = CommittedOffset(offset=6, timestamp_ms=NOW_MS)
    record = OffsetRecord(log_offset=9, key=OffsetKey(group="g", topic="t", partition=0), value=young)
    coordinating.store.committed(0, [record])
    topic.gate.set()
    await expiry
    assert coordinating.store.get("g", "t", 0) == young


async def test_what_expires_is_looked_for_again_and_again() -> None:
    coordinating = holding(committed(OLD_MS))
    coordinating.start(expire_every_s=60)
    await asyncio.sleep(61)
    assert coordinating.store.group("g") is None
    await coordinating.stop()


def committing(offset: int, topic: str = "t") -> CommitRequest:
    return CommitRequest(
        group="g",
        generation=-1,
        member="",
        offsets={(topic, 0): CommittedOffset(offset=offset, timestamp_ms=0)},
        client="c",
        correlation_id=1,
    )


async def test_what_has_expired_or_was_deleted_is_so_for_the_next_coordinator_too() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    await coordinating.commit(committing(5))
    assert await coordinating.expiration.delete_group("g") is ErrorCode.NONE
    assert (await leading(topic, leader_epoch=4)).store.group("g") is None


@pytest.mark.parametrize("error", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])
async def test_what_is_deleted_is_gone_here_even_if_that_cannot_be_stored(
    error: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    await coordinating.commit(committing(5))
    topic.error = error
    assert await coordinating.expiration.delete_group("g") is ErrorCode.NONE
    assert coordinating.store.group("g") is None
    assert [each.log_offset for each in retired(coordinating)] == [-1], "what is not stored is not told as stored"
    assert f"offsets.withdraw failed shard=0 offsets=1 error={error.name}" in caplog.text
    topic.error = ErrorCode.NONE
    assert await coordinating.expiration.delete_group("g") is ErrorCode.GROUP_ID_NOT_FOUND


async def test_what_is_taken_back_is_told_at_once_and_again_when_that_is_stored() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    await coordinating.commit(committing(5))
    topic.gate = asyncio.Event()
    deletion = asyncio.create_task(coordinating.expiration.delete_offsets("g", [("t", 0)]))
    await asyncio.sleep(0)
    retirement = partial(OffsetRetired, group="g", coordinator_epoch=3, topic="t", partition=0)
    assert retired(coordinating) == [retirement(log_offset=-1)]
    topic.gate.set()
    await deletion
    assert retired(coordinating) == [retirement(log_offset=-1), retirement(log_offset=1)]


def retired(coordinating: GroupCoordinator) -> list[OffsetRetired]:
    assert isinstance(coordinating.state_log, RecordingStateLog)
    return [each for each in coordinating.state_log.events if isinstance(each, OffsetRetired)]


async def test_a_commit_that_follows_a_deletion_stays() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    await coordinating.commit(committing(5))
    topic.gate = asyncio.Event()
    deletion = asyncio.create_task(coordinating.expiration.delete_group("g"))
    await asyncio.sleep(0)
    commit = asyncio.create_task(coordinating.commit(committing(6)))
    await asyncio.sleep(0)
    topic.gate.set()
    assert (await deletion, await commit) == (ErrorCode.NONE, {("t", 0): ErrorCode.NONE})
    for each in (coordinating, await leading(topic, leader_epoch=4)):
        value = each.store.get("g", "t", 0)
        assert value is not None
        assert value.offset == 6


async def test_a_group_that_is_committing_is_not_over() -> None:
    topic = FakeTopic(gate=asyncio.Event())
    coordinating = await leading(topic)
    commit = asyncio.create_task(coordinating.commit(committing(5)))
    await asyncio.sleep(0)
    await coordinating.expiration.expire()
    assert topic.gate is not None
    topic.gate.set()
    assert await commit == {("t", 0): ErrorCode.NONE}
    assert coordinating.store.get("g", "t", 0) is not None


async def test_what_another_broker_coordinates_is_not_deleted_here() -> None:
    expiration = coordinator_on(FakeTopic()).expiration
    assert await expiration.delete_group("g") is ErrorCode.NOT_COORDINATOR
    assert await expiration.delete_offsets("g", [("t", 0)]) == (ErrorCode.NOT_COORDINATOR, {})
