"""One replica by itself: what changing roles and truncating leaves of its high watermark and its ISR."""

import pytest

from harness.broker.log.checkpoint import HIGH_WATERMARKS, write_offsets
from harness.broker.log.directories import DataDirectory, LogDirectories
from harness.broker.log.directory import LogDirectory
from harness.broker.log.log import InvalidRecords, OffsetsOutOfOrder
from harness.broker.log.manager import LogManager
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.in_force import ConfigurationsInForce
from harness.broker.replicas.partition import LeaderAndIsr, Partition, PartitionError, TruncationCause
from harness.broker.replicas.replicas import Replicas
from harness.broker.rules import ProtocolRules
from harness.broker.wire.error_codes import ErrorCode
from harness.events import Append, BatchRefused, Event, HighWatermark, Truncate
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import SMALL, batch, from_producer
from tests.broker.recording_state_log import RecordingStateLog
from tests.raising import raising

ME, OTHER = 1, 2
NOW_S = 100.0


def state(leader: int = ME, leader_epoch: int = 0, isr: tuple[int, ...] = (ME, OTHER)) -> LeaderAndIsr:
    return LeaderAndIsr(
        leader=leader, leader_epoch=leader_epoch, isr=isr, zk_version=7, replicas=(ME, OTHER), controller_epoch=3
    )


def hosting(storage: MemoryStorage | None = None) -> tuple[Replicas, list[Event]]:
    events: list[Event] = []
    disk = LogDirectory(storage or MemoryStorage())
    logs = LogDirectories({"d": DataDirectory(disk=disk, logs=LogManager(disk))})
    logs.load()
    state_log = RecordingStateLog(events)
    replicas = Replicas(
        broker_id=ME,
        logs=logs,
        metadata=MetadataCache(),
        state_log=state_log,
        rules=ProtocolRules(),
        lag_s=10.0,
        log_settings=lambda _: SMALL,
        in_force=ConfigurationsInForce(state_log=state_log, min_insync_replicas=lambda _: 1),
        put_aside=lambda _: None,
    )
    replicas.load_high_watermarks()
    return replicas, events


def replica() -> tuple[Partition, list[Event]]:
    replicas, events = hosting()
    return replicas.host("t", 0), events


def append(partition: Partition, count: int) -> None:
    partition.append_as_leader(batch(count), acks=1, min_insync_replicas=1)


def test_a_leader_that_is_alone_in_the_isr_commits_at_once_what_it_has() -> None:
    partition, events = replica()
    partition.make_leader(state(), NOW_S)
    append(partition, 3)
    assert partition.high_watermark == 0
    partition.make_leader(state(leader_epoch=1, isr=(ME,)), NOW_S)
    assert partition.high_watermark == 3
    [moved] = [event for event in events if isinstance(event, HighWatermark)]
    assert (moved.old, moved.new, moved.cause, moved.role) == (0, 3, "become_leader", "leader")


def test_a_member_that_is_proposed_holds_the_high_watermark_back_as_long_as_nobody_knows_whether_it_is_one() -> None:
    partition, _ = replica()
    partition.make_leader(state(isr=(ME,)), NOW_S)
    partition.follower_fetched(OTHER, 0, NOW_S)
    long_after_s = NOW_S + 10 * partition.lag_s
    append(partition, 1)
    partition.proposed_isr = (ME, OTHER)
    assert not partition.advance_high_watermark(long_after_s, cause="append")
    partition.proposed_isr = ()
    assert partition.advance_high_watermark(long_after_s, cause="append")


def test_a_fresh_leader_has_forgotten_what_followers_had_in_an_earlier_term() -> None:
    partition, _ = replica()
    partition.make_leader(state(), NOW_S)
    append(partition, 1)
    partition.follower_fetched(OTHER, 1, NOW_S)
    partition.make_follower(state(leader=OTHER, leader_epoch=1))
    partition.make_leader(state(leader_epoch=2), NOW_S)
    assert partition.followers[OTHER].log_end_offset == -1
    assert partition.high_watermark == 0


def test_a_follower_has_no_isr_and_no_followers() -> None:
    partition, _ = replica()
    partition.make_leader(state(), NOW_S)
    partition.make_follower(state(leader=OTHER, leader_epoch=1))
    assert (partition.isr, partition.followers, partition.epoch_start_offset) == ((), {}, -1)
    with pytest.raises(PartitionError) as refusal:
        append(partition, 1)
    assert refusal.value.error is ErrorCode.NOT_LEADER_FOR_PARTITION


def test_truncation_takes_the_high_watermark_down_and_is_announced_before_it_happens() -> None:
    partition, events = replica()
    partition.make_leader(state(isr=(ME,)), NOW_S)
    append(partition, 1)
    append(partition, 1)
    partition.advance_high_watermark(NOW_S, cause="append")
    partition.make_follower(state(leader=OTHER, leader_epoch=1))
    del events[:]
    partition.truncate(1, TruncationCause(reason="epoch", requested_epoch=0, answer_epoch=0, answer_end_offset=1))
    assert (partition.log.log_end_offset, partition.high_watermark) == (1, 1)
    truncated, moved = events
    assert isinstance(truncated, Truncate)
    assert (truncated.log_end_offset, truncated.to, truncated.high_watermark) == (2, 1, 2)
    assert isinstance(moved, HighWatermark)
    assert (moved.old, moved.new, moved.log_end_offset) == (2, 1, 1)


def following_from(offset: int) -> tuple[Partition, list[Event]]:
    partition, events = replica()
    partition.make_follower(state(leader=OTHER))
    partition.restart_at(offset)
    del events[:]
    return partition, events


def test_an_empty_follower_takes_all_of_the_batch_within_which_its_leader_starts() -> None:
    partition, events = following_from(54)
    partition.append_as_follower(batch(4, base_offset=52, epoch=0))
    log = partition.log
    assert (log.log_start_offset, log.log_end_offset, partition.high_watermark) == (52, 56, 52)
    truncated, *_, appended = events
    assert isinstance(truncated, Truncate)
    assert (truncated.log_end_offset, truncated.to, truncated.reason) == (54, 52, "full")
    assert isinstance(appended, Append)
    assert (appended.base_offset, appended.last_offset) == (52, 55)
    assert partition.follow_high_watermark(56)
    partition.follow_log_start(54)
    assert log.log_start_offset == 54


@pytest.mark.parametrize(
    ("held", "base_offset", "count"),
    [
        pytest.param(1, 53, 4, id="the follower has records"),
        pytest.param(0, 52, 2, id="the batch ends before the log starts"),
    ],
)
def test_another_batch_before_the_end_is_refused(held: int, base_offset: int, count: int) -> None:
    partition, _ = following_from(54)
    if held:
        partition.append_as_follower(batch(held, base_offset=54, epoch=0))
    with pytest.raises(OffsetsOutOfOrder, match=f"sent offset {base_offset}, expected {54 + held} or later"):
        partition.append_as_follower(batch(count, base_offset=base_offset, epoch=0))
    assert partition.log.log_end_offset == 54 + held


def test_truncating_at_the_end_cleans_the_epochs_and_is_no_event() -> None:
    """KAFKA-10706: an epoch that got no record must go too."""
    partition, events = replica()
    partition.make_leader(state(), NOW_S)
    append(partition, 2)
    partition.make_leader(state(leader_epoch=4), NOW_S)
    del events[:]
    partition.truncate(2, TruncationCause(reason="epoch"))
    assert list(partition.log.epochs.entries) == [(0, 0)]
    assert events == []


def test_a_checkpointed_high_watermark_is_cut_to_what_the_log_has() -> None:
    storage = MemoryStorage()
    before, _ = hosting(storage)
    partition = before.host("t", 0)
    partition.make_leader(state(), NOW_S)
    append(partition, 2)
    write_offsets(storage, HIGH_WATERMARKS, {("t", 0): 9, ("gone", 0): 5})
    before.logs.close()
    after, _ = hosting(storage)
    assert after.high_watermarks() == {("t", 0): 9}
    assert after.host("t", 0).high_watermark == 2
    assert after.high_watermarks() == {("t", 0): 2}


@pytest.mark.parametrize(
    ("isr", "min_insync", "allowed"),
    [
        pytest.param((ME, OTHER), 2, True, id="enough"),
        pytest.param((ME,), 2, False, id="too few"),
        pytest.param((ME, OTHER), 5, True, id="more than there are replicas: all of them do"),
    ],
)
def test_acks_all_needs_enough_replicas_in_sync(isr: tuple[int, ...], min_insync: int, allowed: bool) -> None:
    partition, _ = replica()
    partition.make_leader(state(isr=isr), NOW_S)
    if allowed:
        partition.append_as_leader(batch(), acks=-1, min_insync_replicas=min_insync)
    else:
        with pytest.raises(PartitionError) as refusal:
            partition.append_as_leader(batch(), acks=-1, min_insync_replicas=min_insync)
        assert refusal.value.error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == (1 if allowed else 0)


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_an_append_says_what_its_producer_waits_for(acks: int) -> None:
    partition, events = replica()
    partition.make_leader(state(), NOW_S)
    partition.append_as_leader(batch(), acks=acks, min_insync_replicas=1)
    (event,) = (event for event in events if isinstance(event, Append))
    assert (event.role, event.acks, event.isr_size) == ("leader", acks, 2)


def test_a_batch_of_an_idempotent_producer_that_is_refused_is_logged_with_its_numbers() -> None:
    partition, events = replica()
    partition.make_leader(state(leader_epoch=4), NOW_S)
    partition.append_as_leader(from_producer(0), acks=-1, min_insync_replicas=1)
    for sent in (from_producer(5, 3), b"no batch"):
        with pytest.raises(InvalidRecords):
            partition.append_as_leader(sent, acks=-1, min_insync_replicas=1)
    (event,) = (event for event in events if isinstance(event, BatchRefused))
    assert (event.producer_id, event.producer_epoch, event.base_sequence, event.last_sequence) == (7, 0, 5, 7)
    assert (event.leader_epoch, event.log_start_offset) == (4, 0)
    assert event.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_disk_that_refuses_the_epoch_leaves_the_replica_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    replicas, _ = hosting(storage)
    partition = replicas.host("t", 0)
    partition.make_follower(state(leader=OTHER, leader_epoch=0))
    write = storage.replace
    monkeypatch.setattr(storage, "replace", raising(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        partition.make_leader(state(leader_epoch=1), NOW_S)
    assert (partition.leader, partition.leader_epoch, list(partition.log.epochs.entries)) == (OTHER, 0, [])
    monkeypatch.setattr(storage, "replace", write)
    partition.make_leader(state(leader_epoch=2), NOW_S)
    assert list(partition.log.epochs.entries) == [(2, 0)]
    assert partition.high_watermark == 0
