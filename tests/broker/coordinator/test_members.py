"""Members over the shell of the coordinator: waiting, timers in virtual time, records, failover."""

import asyncio
from dataclasses import replace

import pytest

from harness.broker.coordinator.coordinator import CommitRequest, GroupCoordinator
from harness.broker.coordinator.effects import JoinAnswer, SyncAnswer
from harness.broker.coordinator.group import GroupState
from harness.broker.coordinator.records import CommittedOffset, GroupRecord, decode_chunk
from harness.broker.coordinator.requests import GroupLimits, Join, Sync
from harness.broker.coordinator.statistics import GroupCounters
from harness.broker.coordinator.store import GroupStore
from harness.broker.rules import rules_with
from harness.broker.wire.error_codes import ErrorCode
from harness.events import Event, GroupHeartbeat
from harness.values import OFFSETS_TOPIC
from tests.broker.coordinator.coordinators import FakeTopic, coordinator_on, leading, settled
from tests.broker.recording_state_log import RecordingStateLog

SESSION_S = 10
JOIN = Join(
    member_id="",
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=60_000,
    session_timeout_ms=SESSION_S * 1000,
    protocol_type="consumer",
    protocols=(("range", b""),),
)


async def stable(coordinating: GroupCoordinator, group: str = "g") -> str:
    """Make a client the only member of a group, in generation 1, and return its id."""
    joined = await coordinating.members.join(group, JOIN)
    assert (joined.error, joined.generation) == (ErrorCode.NONE, 1)
    synced = await coordinating.members.sync(group, assigning(joined))
    assert synced.assignment == b"all"
    return joined.member_id


def assigning(joined: JoinAnswer) -> Sync:
    return Sync(generation=joined.generation, member_id=joined.member_id, assignments={joined.member_id: b"all"})


def state(coordinating: GroupCoordinator) -> tuple[GroupState, int] | None:
    known = coordinating.store.group("g")
    return None if known is None else (known.membership.group.state, known.membership.group.generation)


def stored(topic: FakeTopic) -> list[tuple[int, int] | None]:
    """Return the generation and the number of members of each record of the group; None for a tombstone."""
    records = [record for _, data in topic.disk.batches for record in decode_chunk(data).records]
    groups = [record.value for record in records if isinstance(record, GroupRecord)]
    return [None if value is None else (value.generation, len(value.members)) for value in groups]


def counted(counters: GroupCounters) -> tuple[int, ...]:
    return tuple(each.count for each in (counters.committed, counters.expired, counters.deleted, counters.rebalances))


def recorded(coordinating: GroupCoordinator) -> list[Event]:
    assert isinstance(coordinating.state_log, RecordingStateLog)
    return coordinating.state_log.events


async def test_a_member_that_is_not_heard_of_is_gone_when_its_session_is_over() -> None:
    coordinating = await leading(FakeTopic())
    member = await stable(coordinating)
    for _ in range(3):
        await asyncio.sleep(SESSION_S - 1)
        assert coordinating.members.heartbeat("g", 1, member, None) is ErrorCode.NONE
    await asyncio.sleep(SESSION_S - 1)
    assert state(coordinating) == (GroupState.STABLE, 1)
    await asyncio.sleep(2)
    assert state(coordinating) == (GroupState.EMPTY, 2)
    assert coordinating.members.heartbeat("g", 1, member, None) is ErrorCode.UNKNOWN_MEMBER_ID
    heard = [each for each in recorded(coordinating) if isinstance(each, GroupHeartbeat)]
    assert [(each.member, each.session_timeout_ms) for each in heard] == [(member, SESSION_S * 1000)] * 3


async def test_the_next_coordinator_goes_on_with_members_and_assignments_and_begins_their_sessions_anew() -> None:
    topic = FakeTopic()
    first = await leading(topic)
    member = await stable(first)
    await asyncio.sleep(SESSION_S - 1)
    first.leadership_changed([], [(OFFSETS_TOPIC, 0, 4)])
    coordinating = await leading(topic, leader_epoch=4)
    await asyncio.sleep(SESSION_S - 1)
    assert coordinating.members.heartbeat("g", 1, member, None) is ErrorCode.NONE
    synced = await coordinating.members.sync("g", Sync(generation=1, member_id=member))
    assert synced == SyncAnswer(protocol_type="consumer", protocol="range", assignment=b"all")
    await asyncio.sleep(SESSION_S + 1)
    assert state(coordinating) == (GroupState.EMPTY, 2)
    assert stored(topic) == [(1, 1), (2, 0)]


async def test_offsets_and_rebalances_are_counted_as_kafka_counts_them() -> None:
    """An assignment counts, a generation without members does not; nor do offsets that go with their group."""
    now_ms = 0
    coordinating = coordinator_on(FakeTopic(), wall_ms=lambda: now_ms)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 3)], [])
    await settled(coordinating)
    member, other = await stable(coordinating), CommittedOffset(offset=5, timestamp_ms=0)
    offsets = {("t", partition): other for partition in range(4)}
    commit = CommitRequest(group="g", generation=1, member=member, offsets=offsets, client="c", correlation_id=1)
    await coordinating.commit(commit)
    await coordinating.commit(replace(commit, generation=7))
    coordinating.members.leave("g", [(member, None)])
    for _ in range(2):
        await coordinating.expiration.delete_offsets("g", [("t", 0), ("t", 9)])
    offset_of_its_own = {("t", 1): replace(other, expires_ms=1)}
    await coordinating.commit(replace(commit, generation=-1, member="", offsets=offset_of_its_own))
    now_ms = 1
    await coordinating.expiration.expire()
    await coordinating.expiration.delete_group("g")
    counters = coordinating.statistics().counters
    assert counted(counters) == (5, 1, 1, 1)


async def test_groups_and_members_for_whom_a_time_runs_are_counted_as_kafkas_purgatories_do() -> None:
    coordinating = await leading(FakeTopic())
    assert waiting_in(coordinating) == (0, 0)
    member = await stable(coordinating)
    assert waiting_in(coordinating) == (0, 1)
    second = asyncio.create_task(coordinating.members.join("g", JOIN))
    await asyncio.sleep(1)
    assert waiting_in(coordinating) == (1, 2), "the time to join, and the session of each member"
    joined = await coordinating.members.join("g", replace(JOIN, member_id=member))
    await second
    assert waiting_in(coordinating) == (1, 2), "the time to ask for an assignment"
    await coordinating.members.sync("g", assigning(joined))
    await coordinating.members.sync("g", Sync(generation=joined.generation, member_id=(await second).member_id))
    assert waiting_in(coordinating) == (0, 2)
    coordinating.leadership_changed([], [(OFFSETS_TOPIC, 0, 4)])
    assert waiting_in(coordinating) == (0, 0)


def waiting_in(coordinating: GroupCoordinator) -> tuple[int, int]:
    statistics = coordinating.statistics()
    return statistics.delayed_rebalances, statistics.delayed_heartbeats


async def test_what_could_not_be_taken_back_is_not_counted() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    offsets = {("t", partition): CommittedOffset(offset=5, timestamp_ms=0) for partition in range(2)}
    commit = CommitRequest(group="g", generation=-1, member="", offsets=offsets, client="c", correlation_id=1)
    await coordinating.commit(commit)
    topic.error = ErrorCode.NOT_ENOUGH_REPLICAS
    await coordinating.expiration.delete_offsets("g", [("t", 0)])
    await coordinating.expiration.expire()
    assert counted(coordinating.statistics().counters) == (2, 0, 0, 0)


async def test_a_coordinator_that_ends_between_its_record_and_its_answer_leaves_the_generation_to_the_next() -> None:
    topic = FakeTopic()
    first = await leading(topic)
    joined = await first.members.join("g", JOIN)
    topic.gate = asyncio.Event()
    waiting = asyncio.create_task(first.members.sync("g", assigning(joined)))
    await asyncio.sleep(1)
    assert stored(topic) == [(1, 1)]
    assert not waiting.done()
    first.leadership_changed([], [(OFFSETS_TOPIC, 0, 4)])
    assert (await waiting).error is ErrorCode.NOT_COORDINATOR
    topic.gate.set()
    await asyncio.sleep(1)
    assert first.store.group("g") is None
    second = await leading(topic, leader_epoch=5)
    synced = await second.members.sync("g", Sync(generation=1, member_id=joined.member_id))
    assert synced.assignment == b"all"


async def test_a_generation_that_was_not_stored_is_not_known_to_the_next_coordinator() -> None:
    topic = FakeTopic()
    first = await leading(topic)
    joined = await first.members.join("g", JOIN)
    second = await leading(topic, leader_epoch=4)
    assert (await second.members.sync("g", assigning(joined))).error is ErrorCode.UNKNOWN_MEMBER_ID


async def test_an_unload_of_an_older_epoch_leaves_members_alone() -> None:
    coordinating = await leading(FakeTopic(), leader_epoch=7)
    member = await stable(coordinating)
    coordinating.leadership_changed([], [(OFFSETS_TOPIC, 0, 6)])
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 6)], [])
    assert coordinating.members.heartbeat("g", 1, member, None) is ErrorCode.NONE


async def test_who_waits_to_join_is_told_when_another_broker_coordinates() -> None:
    coordinating = await leading(FakeTopic())
    await stable(coordinating)
    waiting = asyncio.create_task(coordinating.members.join("g", JOIN))
    await asyncio.sleep(1)
    coordinating.leadership_changed([], [(OFFSETS_TOPIC, 0, 4)])
    assert (await waiting).error is ErrorCode.NOT_COORDINATOR


async def test_groups_that_a_late_unload_has_left_are_read_again_and_who_waits_is_sent_away() -> None:
    """Only with the planted bug: otherwise a loss comes first, and leaves nothing."""
    store = GroupStore(
        partitions=1, limits=GroupLimits(initial_rebalance_delay_ms=0), rules=rules_with(["late-unload"])
    )
    coordinating = coordinator_on(FakeTopic(), store)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 3)], [])
    await settled(coordinating)
    member = await stable(coordinating)
    waiting = asyncio.create_task(coordinating.members.join("g", JOIN))
    await asyncio.sleep(1)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 5)], [(OFFSETS_TOPIC, 0, 4)])
    assert (await waiting).error is ErrorCode.NOT_COORDINATOR
    await settled(coordinating)
    assert coordinating.members.heartbeat("g", 1, member, None) is ErrorCode.NONE
    await coordinating.stop()


async def test_while_a_group_is_loaded_its_members_are_put_off() -> None:
    coordinating = coordinator_on(FakeTopic())
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, 3)], [])
    members = coordinating.members
    assert (await members.join("g", JOIN)).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (await members.sync("g", Sync(generation=1, member_id="m"))).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert members.heartbeat("g", 1, "m", None) is ErrorCode.NONE
    assert members.leave("g", [("m", None)]) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])


async def test_another_brokers_members_are_sent_there() -> None:
    members = coordinator_on(FakeTopic()).members
    assert (await members.join("g", JOIN)).error is ErrorCode.NOT_COORDINATOR
    assert (await members.sync("g", Sync(generation=1, member_id="m"))).error is ErrorCode.NOT_COORDINATOR
    assert members.heartbeat("g", 1, "m", None) is ErrorCode.NOT_COORDINATOR
    assert members.leave("g", [("m", None)]) == (ErrorCode.NOT_COORDINATOR, [])


@pytest.mark.parametrize(
    ("append_error", "answered"),
    [
        pytest.param(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE, id="too few replicas"),
        pytest.param(ErrorCode.NOT_LEADER_FOR_PARTITION, ErrorCode.NOT_COORDINATOR, id="no longer the leader"),
        pytest.param(ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR, id="a broken disk"),
        pytest.param(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS, id="not in time"),
        pytest.param(ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR, id="too large"),
        pytest.param(ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_TIMESTAMP, id="anything else"),
    ],
)
async def test_an_assignment_that_cannot_be_stored(append_error: ErrorCode, answered: ErrorCode) -> None:
    coordinating = await leading(FakeTopic(error=append_error))
    joined = await coordinating.members.join("g", JOIN)
    assert (await coordinating.members.sync("g", assigning(joined))).error is answered
    assert state(coordinating) == (GroupState.PREPARING, 1)


async def test_garbage_and_a_megabyte_go_through_the_log_as_they_are() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    garbage = replace(JOIN, protocols=(("range", b"\xff\x00\xff"),))
    joined = await coordinating.members.join("g", garbage)
    assignment = bytes(1 << 20)
    sync = Sync(generation=1, member_id=joined.member_id, assignments={joined.member_id: assignment})
    await coordinating.members.sync("g", sync)
    second = await leading(topic, leader_epoch=4)
    synced = await second.members.sync("g", Sync(generation=1, member_id=joined.member_id))
    assert synced.assignment == assignment


async def test_what_a_member_may_commit_survives_the_coordinator() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    member = await stable(coordinating)
    request = CommitRequest(
        group="g",
        generation=1,
        member=member,
        offsets={("t", 0): CommittedOffset(offset=5, timestamp_ms=1)},
        client="c",
        correlation_id=1,
    )
    assert await coordinating.commit(request) == {("t", 0): ErrorCode.NONE}
    assert await coordinating.commit(replace(request, generation=0)) == {("t", 0): ErrorCode.ILLEGAL_GENERATION}
    second = await leading(topic, leader_epoch=4)
    assert (committed := second.store.get("g", "t", 0)) is not None
    assert committed.offset == 5


async def test_a_stop_leaves_no_timer_and_nothing_that_is_being_stored() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    joined = await coordinating.members.join("g", JOIN)
    topic.gate = asyncio.Event()
    waiting = asyncio.create_task(coordinating.members.sync("g", assigning(joined)))
    await asyncio.sleep(1)
    await coordinating.stop()
    waiting.cancel()
    await asyncio.sleep(1000)
    assert state(coordinating) == (GroupState.COMPLETING, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_thousand_groups_that_are_not_heard_of_leave_nothing_behind() -> None:
    coordinating = await leading(FakeTopic())
    await asyncio.gather(*(stable(coordinating, f"g{number}") for number in range(1000)))
    assert {known.membership.group.state for _, known in coordinating.store.groups()} == {GroupState.STABLE}
    await asyncio.sleep(SESSION_S + 1)
    await coordinating.expiration.expire()
    members = coordinating.members
    assert (coordinating.store.groups(), members._timers, members._waiting, members._stores) == ([], {}, {}, set())
