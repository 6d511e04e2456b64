import asyncio

import pytest

from harness.broker.coordinator.coordinator import CommitRequest, GroupCoordinator
from harness.broker.coordinator.group import GroupState
from harness.broker.coordinator.records import CommittedOffset, OffsetKey, encode_batch
from harness.broker.coordinator.statistics import LoadTimes
from harness.broker.log.batch import Numbering
from harness.broker.log.markers import Marker, marker_batch
from harness.broker.wire.error_codes import ErrorCode
from harness.events import CoordinatorLoad, CoordinatorUnload, OffsetCommit, OffsetFetch
from harness.values import OFFSETS_TOPIC
from tests.broker.coordinator.coordinators import FakeLog, FakeTopic, coordinator_on, leading, settled
from tests.broker.recording_state_log import RecordingStateLog


def events(coordinating: GroupCoordinator) -> list[object]:
    assert isinstance(coordinating.state_log, RecordingStateLog)
    return list(coordinating.state_log.events)


def request(*offsets: int, generation: int = -1, metadata: str = "") -> CommitRequest:
    return CommitRequest(
        group="g",
        generation=generation,
        member="",
        offsets={
            ("t", number): CommittedOffset(offset=offset, metadata=metadata, timestamp_ms=1_000)
            for number, offset in enumerate(offsets)
        },
        client="c",
        correlation_id=1,
    )


def committed(coordinating: GroupCoordinator, partition: int = 0) -> int | None:
    position = coordinating.fetch("g", "t", partition)
    return position.offset if position else None


async def test_a_commit_is_readable_and_says_where_it_stands() -> None:
    coordinating = await leading(FakeTopic())
    assert await coordinating.commit(request(7, 9)) == {("t", 0): ErrorCode.NONE, ("t", 1): ErrorCode.NONE}
    assert (committed(coordinating, 0), committed(coordinating, 1)) == (7, 9)
    logged = [event for event in events(coordinating) if isinstance(event, OffsetCommit)]
    assert [(event.partition, event.offset, event.log_offset, event.error) for event in logged] == [
        (0, 7, 0, 0),
        (1, 9, 1, 0),
    ]


async def test_a_commit_says_when_and_in_which_epoch_it_was_decided() -> None:
    topic = FakeTopic(gate=asyncio.Event())
    coordinating = await leading(topic, leader_epoch=3)
    decided_seq = len(events(coordinating))
    commit = asyncio.create_task(coordinating.commit(request(7)))
    await asyncio.sleep(0)
    committed(coordinating)
    assert topic.gate is not None
    topic.gate.set()
    await commit
    assert events(coordinating)[-1] == OffsetCommit(
        group="g",
        generation=-1,
        member="",
        instance=None,
        coordinator_epoch=3,
        decided_seq=decided_seq,
        topic="t",
        partition=0,
        offset=7,
        log_offset=0,
        error=0,
    )
    assert len(events(coordinating)) == decided_seq + 2


async def test_a_commit_is_not_readable_before_it_is_acknowledged() -> None:
    topic = FakeTopic(gate=asyncio.Event())
    coordinating = await leading(topic)
    commit = asyncio.create_task(coordinating.commit(request(7)))
    await asyncio.sleep(0)
    assert committed(coordinating) is None
    assert topic.gate is not None
    topic.gate.set()
    await commit
    assert committed(coordinating) == 7


@pytest.mark.parametrize(
    ("append_error", "answered"),
    [
        pytest.param(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE, id="too few replicas"),
        pytest.param(
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            id="too few replicas once it was written",
        ),
        pytest.param(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE, id="no such partition"),
        pytest.param(ErrorCode.NOT_LEADER_FOR_PARTITION, ErrorCode.NOT_COORDINATOR, id="no longer the leader"),
        pytest.param(ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR, id="a broken disk"),
        pytest.param(ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE, id="too large"),
        pytest.param(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, id="not in time, so perhaps"),
    ],
)
async def test_a_failed_append_commits_nothing(append_error: ErrorCode, answered: ErrorCode) -> None:
    coordinating = await leading(FakeTopic(error=append_error))
    assert await coordinating.commit(request(7)) == {("t", 0): answered}
    assert committed(coordinating) is None
    assert [event.log_offset for event in events(coordinating) if isinstance(event, OffsetCommit)] == [-1]


async def test_a_member_of_an_unknown_group_has_a_wrong_generation() -> None:
    coordinating = await leading(FakeTopic())
    assert await coordinating.commit(request(7, generation=0)) == {("t", 0): ErrorCode.ILLEGAL_GENERATION}


async def test_a_group_without_members_knows_no_member() -> None:
    coordinating = await leading(FakeTopic())
    await coordinating.commit(request(7))
    assert await coordinating.commit(request(8, generation=0)) == {("t", 0): ErrorCode.UNKNOWN_MEMBER_ID}
    assert committed(coordinating) == 7


async def test_metadata_that_is_too_long_is_refused_and_nothing_is_written() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    answer = await coordinating.commit(request(7, metadata="12345"))
    assert answer == {("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert topic.disk.log_end_offset == 0


async def test_who_does_not_lead_does_not_commit() -> None:
    coordinating = coordinator_on(FakeTopic())
    assert await coordinating.commit(request(7)) == {("t", 0): ErrorCode.NOT_COORDINATOR}


async def test_a_new_leader_finds_what_the_old_one_committed_and_nobody_may_ask_before() -> None:
    topic = FakeTopic()
    key = OffsetKey(group="g", topic="t", partition=0)
    for offset in (5, 6):
        topic.disk.add(encode_batch([(key, CommittedOffset(offset=offset, timestamp_ms=1))], 1))
    coordinating = coordinator_on(topic)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 3)], [])
    assert coordinating.store.coordinator_error("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await settled(coordinating)
    assert committed(coordinating) == 6
    load = CoordinatorLoad(partition=0, leader_epoch=3, groups=1, offsets=1, log_end_offset=2, disk_error="")
    assert load in events(coordinating)


async def test_a_log_that_cannot_be_read_leaves_an_empty_coordinator_which_says_why() -> None:
    topic = FakeTopic(FakeLog(broken=True))
    topic.disk.log_end_offset = 1
    coordinating = await leading(topic)
    assert coordinating.store.coordinator_error("g") is ErrorCode.NONE
    load = CoordinatorLoad(
        partition=0, leader_epoch=3, groups=0, offsets=0, log_end_offset=0, disk_error="the disk is gone"
    )
    assert load in events(coordinating)
    assert committed(coordinating) is None


async def test_what_it_holds_and_how_long_it_took_to_load_it_is_counted() -> None:
    coordinating = await leading(FakeTopic())
    await coordinating.commit(request(7, 9))
    looked = coordinating.statistics()
    assert (looked.groups, looked.offsets, looked.loads.count) == ({GroupState.EMPTY: 1}, 2, 1)
    loads = LoadTimes()
    assert (loads.average_s, loads.longest_s) == (0.0, 0.0)
    for seconds in (1.0, 3.0, 2.0):
        loads.add(seconds)
    assert (loads.count, loads.average_s, loads.longest_s) == (3, 2.0, 3.0)


async def test_a_lost_leadership_is_logged_once_and_drops_the_offsets() -> None:
    coordinating = await leading(FakeTopic())
    await coordinating.commit(request(7))
    for _ in range(2):
        coordinating.leadership_changed([], [(OFFSETS_TOPIC, 0, 4)])
    assert coordinating.store.coordinator_error("g") is ErrorCode.NOT_COORDINATOR
    unloads = [event for event in events(coordinating) if isinstance(event, CoordinatorUnload)]
    assert unloads == [CoordinatorUnload(partition=0, leader_epoch=4, groups=1)]


async def test_other_topics_are_none_of_its_business() -> None:
    coordinating = coordinator_on(FakeTopic())
    coordinating.leadership_changed([("t", 0, 3)], [("u", 0, 3)])
    assert coordinating.store.coordinator_error("g") is ErrorCode.NOT_COORDINATOR
    assert events(coordinating) == []


async def test_a_stop_ends_loads_that_are_under_way() -> None:
    topic = FakeTopic()
    topic.disk.add(encode_batch([(OffsetKey(group="g", topic="t", partition=0), None)], 1))
    coordinating = coordinator_on(topic)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 3)], [])
    await coordinating.stop()
    assert coordinating.store.coordinator_error("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_reading_back_is_logged() -> None:
    coordinating = await leading(FakeTopic())
    committed(coordinating, 4)
    assert OffsetFetch(group="g", topic="t", partition=4, offset=-1, error=0) in events(coordinating)


async def test_positions_in_a_deleted_partition_are_gone_now_and_for_later_coordinators() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    await coordinating.commit(request(5, 6))
    coordinating.partitions_deleted([("t", 0), ("other", 0)])
    assert (committed(coordinating, 0), committed(coordinating, 1)) == (None, 6)
    await withdrawn(coordinating)
    later = await leading(topic, leader_epoch=4)
    assert (committed(later, 0), committed(later, 1)) == (None, 6)


async def test_a_commit_that_was_on_its_way_when_its_partition_was_deleted_does_not_stay() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    await coordinating.commit(request(5))
    topic.gate = asyncio.Event()
    late = asyncio.ensure_future(coordinating.commit(request(7)))
    await asyncio.sleep(0)
    coordinating.partitions_deleted([("t", 0)])
    await asyncio.sleep(0)
    topic.gate.set()
    await late
    await withdrawn(coordinating)
    assert committed(coordinating) is None
    assert committed(await leading(topic, leader_epoch=4)) is None


async def test_what_was_deleted_while_its_positions_were_loaded_has_none_afterwards() -> None:
    topic = FakeTopic()
    await (await leading(topic)).commit(request(5, 6))
    coordinating = coordinator_on(topic)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 4)], [])
    coordinating.partitions_deleted([("t", 1)])
    await settled(coordinating)
    assert (committed(coordinating, 0), committed(coordinating, 1)) == (5, None)
    await withdrawn(coordinating)
    assert committed(await leading(topic, leader_epoch=5), 1) is None


@pytest.mark.parametrize(("commits", "position"), [(True, 7), (False, None)], ids=["committed", "aborted"])
async def test_a_loaded_transaction_that_has_ended_holds_nothing(commits: bool, position: int | None) -> None:
    topic = FakeTopic()
    of_producer = Numbering(producer_id=8, producer_epoch=0, base_sequence=0)
    value = CommittedOffset(offset=7, metadata="", timestamp_ms=1_000)
    topic.disk.add(encode_batch([(OffsetKey(group="g", topic="t", partition=0), value)], 1_000, of_producer))
    marker = Marker(commits=commits, coordinator_epoch=0)
    topic.disk.add(marker_batch(marker, producer_id=8, producer_epoch=0, timestamp_ms=1_000))
    coordinating = await leading(topic)
    assert committed(coordinating) == position
    assert not coordinating.store.is_unstable("g", "t", 0)


async def test_a_withdrawal_that_cannot_be_written_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    await coordinating.commit(request(5))
    topic.error = ErrorCode.NOT_ENOUGH_REPLICAS
    coordinating.partitions_deleted([("t", 0)])
    await withdrawn(coordinating)
    assert "offsets.withdraw failed shard=0 offsets=1 error=NOT_ENOUGH_REPLICAS" in caplog.text
    assert committed(coordinating) is None


async def withdrawn(coordinating: GroupCoordinator) -> None:
    """Return when nothing is being written about deleted partitions any more."""
    for _ in range(50):
        if not coordinating.expiration.under_way:
            return
        await asyncio.sleep(0)
    pytest.fail("the withdrawal does not end")
