from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.records import CommittedOffset, OffsetKey, OffsetRecord
from harness.broker.coordinator.store import GroupStore
from harness.broker.wire.error_codes import ErrorCode


def record(log_offset: int, offset: int | None, group: str = "g", partition: int = 0) -> OffsetRecord:
    value = None if offset is None else CommittedOffset(offset=offset, timestamp_ms=0)
    return OffsetRecord(log_offset=log_offset, key=OffsetKey(group=group, topic="t", partition=partition), value=value)


def owned(*records: OffsetRecord, leader_epoch: int = 5) -> GroupStore:
    store = GroupStore(partitions=1)
    assert store.begin_load(0, leader_epoch)
    assert store.finish_load(0, leader_epoch, records)
    return store


def offset_of(store: GroupStore) -> int | None:
    committed = store.get("g", "t", 0)
    return committed.offset if committed else None


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([record(0, 10), record(1, 20)], 20, id="the last record wins"),
        pytest.param([record(0, 20), record(1, 10)], 10, id="even when it goes back"),
        pytest.param([record(0, 10), record(1, None)], None, id="a tombstone takes it back"),
        pytest.param([record(0, 10), record(1, None), record(2, 30)], 30, id="and can be followed by another"),
        pytest.param([record(4, 10), record(3, 20)], 10, id="an older record than the known one changes nothing"),
        pytest.param([], None, id="an empty log commits nothing"),
    ],
)
def test_a_load_takes_what_the_log_says(records: list[OffsetRecord], expected: int | None) -> None:
    assert offset_of(owned(*records)) == expected


def test_a_group_whose_offsets_were_all_taken_back_is_not_known() -> None:
    assert owned(record(0, 10), record(1, None)).group("g") is None


def test_the_gate_follows_the_leadership() -> None:
    store = GroupStore(partitions=1)
    assert store.coordinator_error("g") is ErrorCode.NOT_COORDINATOR
    store.begin_load(0, 5)
    assert store.coordinator_error("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    store.finish_load(0, 5, [])
    assert store.coordinator_error("g") is ErrorCode.NONE
    store.unload(0, 6)
    assert store.coordinator_error("g") is ErrorCode.NOT_COORDINATOR


def test_a_late_unload_of_an_older_epoch_drops_nothing() -> None:
    store = owned(record(0, 10), leader_epoch=7)
    assert not store.unload(0, 6)
    assert offset_of(store) == 10


def test_a_deleted_replica_unloads_in_its_own_epoch() -> None:
    store = owned(record(0, 10), leader_epoch=7)
    assert store.unload(0, 7)
    assert store.coordinator_error("g") is ErrorCode.NOT_COORDINATOR


def test_a_late_load_of_an_older_epoch_does_not_begin() -> None:
    store = GroupStore(partitions=1)
    store.unload(0, 6)
    assert not store.begin_load(0, 5)
    assert store.coordinator_error("g") is ErrorCode.NOT_COORDINATOR


def test_a_load_of_the_same_epoch_does_not_begin_again() -> None:
    store = owned(record(0, 10), leader_epoch=5)
    assert not store.begin_load(0, 5)
    assert offset_of(store) == 10


def test_a_load_that_was_overtaken_by_a_newer_one_is_dropped() -> None:
    store = GroupStore(partitions=1)
    store.begin_load(0, 5)
    store.begin_load(0, 7)
    assert not store.finish_load(0, 5, [record(0, 10)])
    assert store.coordinator_error("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert store.finish_load(0, 7, [record(0, 20)])
    assert offset_of(store) == 20


def test_a_load_that_ends_after_the_leadership_is_lost_is_dropped() -> None:
    store = GroupStore(partitions=1)
    store.begin_load(0, 5)
    store.unload(0, 6)
    assert not store.finish_load(0, 5, [record(0, 10)])
    assert store.coordinator_error("g") is ErrorCode.NOT_COORDINATOR


def test_an_unload_of_what_was_never_led_is_no_news() -> None:
    assert not GroupStore(partitions=1).unload(0, 5)


def test_commits_acknowledged_out_of_order_leave_the_later_one() -> None:
    store = owned()
    store.committed(0, [record(8, 80)])
    store.committed(0, [record(7, 70)])
    assert offset_of(store) == 80


def test_a_commit_acknowledged_after_the_leadership_is_lost_changes_nothing() -> None:
    store = owned()
    store.unload(0, 6)
    store.committed(0, [record(8, 80)])
    assert offset_of(store) is None


def test_a_group_created_without_offsets_is_known_and_empty() -> None:
    store = owned()
    store.create_group("g")
    assert store.group("g") is not None
    assert store.offsets_of("g") == {}
    assert store.counts(0) == (1, 0)


def test_all_offsets_come_sorted_by_topic_and_partition() -> None:
    store = owned(record(0, 1, partition=2), record(1, 2, partition=0), record(2, 3, group="other"))
    assert list(store.offsets_of("g")["t"]) == [0, 2]
    assert store.counts(0) == (2, 3)


def unloads(store: GroupStore) -> bool:
    return store.unload(0, 6)


def loads_anew(store: GroupStore) -> bool:
    return store.begin_load(0, 6)


@pytest.mark.parametrize("moves", [unloads, loads_anew])
def test_groups_of_a_partition_that_moves_hold_nothing_any_more(moves: Callable[[GroupStore], bool]) -> None:
    store = GroupStore(partitions=2)
    names = {partition_of(name, 2): name for name in ("a", "b")}
    for partition, name in names.items():
        store.begin_load(partition, 5)
        store.finish_load(partition, 5, [], [replace(record(1, 10, group=name), producer_id=7)])
    assert store.holders == {7: {"a", "b"}}
    assert moves(store)
    assert store.holders == {7: {names[1]}}
    store.unload(1, 6)
    assert store.holders == {}
