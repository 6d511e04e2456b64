"""Transactions in one log: which offset is stable, which transactions were aborted, and which writes are allowed."""

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker.log.batch import assign, seal
from harness.broker.log.log import InvalidRecords, Log
from harness.broker.log.markers import Marker, marker_batch, read_marker
from harness.broker.log.transaction_index import AbortedTransaction
from harness.broker.rules import rules_with
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import (
    SMALL,
    batch,
    end_transaction,
    everything,
    from_producer,
    headers,
    in_transaction,
    new_log,
    opened,
    write_in_transaction,
)

LATEST = 1 << 40
INDEX = "t-0/00000000000000000000.txnindex"


def written(log: Log, *steps: str) -> Log:
    """Carry out steps such as `7 writes`, `8 commits`, `7 aborts`; `- writes` is a producer without an id."""
    for step in steps:
        producer, what = step.split()
        if producer == "-":
            log.append_as_leader(batch(), 0)
            continue
        producer_id = int(producer)
        if what == "writes":
            known = log.producers.get(producer_id)
            sequence = known.batches[-1].last_sequence + 1 if known is not None and known.batches else 0
            write_in_transaction(log, sequence, producer_id=producer_id)
        else:
            end_transaction(log, commits=what == "commits", producer_id=producer_id)
    return log


def aborted(log: Log, start: int = 0, end: int = LATEST) -> list[AbortedTransaction]:
    return log.aborted_transactions(start, end)


@pytest.mark.parametrize(
    ("steps", "high_watermark", "unstable"),
    [
        pytest.param(["- writes"], 1, None, id="records without transactions are stable"),
        pytest.param(["- writes", "7 writes", "7 writes"], 3, 1, id="an open transaction is unstable from its start"),
        pytest.param(["7 writes", "8 writes", "7 commits"], 3, 1, id="of two the one that is open counts"),
        pytest.param(["7 writes", "8 writes", "8 commits"], 3, 0, id="the first one counts, be it ended later"),
        pytest.param(["7 writes", "7 aborts"], 2, None, id="an aborted one is decided"),
        pytest.param(["7 writes", "7 commits"], 1, 0, id="a marker that is not committed decides nothing"),
        pytest.param(["7 writes", "7 commits", "7 writes"], 3, 2, id="the next transaction begins after the marker"),
        pytest.param(["7 commits", "- writes"], 0, None, id="a marker without a transaction changes nothing"),
    ],
)
def test_the_first_unstable_offset(
    storage: MemoryStorage, steps: list[str], high_watermark: int, unstable: int | None
) -> None:
    log = written(new_log(storage), *steps)
    assert log.first_unstable_offset(high_watermark) == unstable
    follower = new_log()
    follower.append_as_follower(everything(log))
    again, _ = opened(storage)
    assert [each.first_unstable_offset(high_watermark) for each in (follower, again)] == [unstable] * 2


def test_with_the_planted_bug_a_marker_decides_before_it_is_committed() -> None:
    log, _ = opened(MemoryStorage(), rules=rules_with(["markers-decide-at-once"]))
    assert written(log, "7 writes", "7 commits").first_unstable_offset(1) is None


def test_a_transaction_that_began_before_the_log_does_is_unstable_from_its_start() -> None:
    log = written(new_log(), "7 writes", "- writes", "- writes")
    log.advance_log_start(2)
    assert log.first_unstable_offset(3) == 2


@pytest.mark.parametrize(
    ("start", "end", "first_offsets"),
    [
        pytest.param(0, 1, [], id="before all"),
        pytest.param(0, 2, [1], id="the first record of one"),
        pytest.param(3, 5, [1, 2], id="from its middle, and another one"),
        pytest.param(5, 9, [2], id="after the marker of the first"),
        pytest.param(0, LATEST, [1, 2], id="all"),
        pytest.param(7, LATEST, [], id="after all"),
    ],
)
@pytest.mark.parametrize("how", ["leader", "follower", "restarted", "recovered"])
def test_aborted_transactions_are_those_that_overlap(
    storage: MemoryStorage, how: str, start: int, end: int, first_offsets: list[int]
) -> None:
    """8 writes 0 and commits, 7 writes 1 and 3, 9 writes 2: both abort, in this order."""
    steps = ("8 writes", "7 writes", "9 writes", "7 writes", "7 aborts", "8 commits", "9 aborts", "- writes")
    log = written(new_log(storage), *steps)
    if how == "follower":
        leader, log = log, new_log()
        log.append_as_follower(everything(leader))
    elif how != "leader":
        log.flush()
        log.seal()
        log.close()
        log, _ = opened(storage, clean=how == "restarted", recovery_point=8 if how == "restarted" else 0)
    assert [each.first_offset for each in log.aborted_transactions(start, end)] == first_offsets
    assert aborted(log) == [(7, 1, 4, 0), (9, 2, 6, 7)]


def test_the_index_is_in_kafkas_format(storage: MemoryStorage) -> None:
    written(new_log(storage), "7 writes", "8 writes", "7 aborts", "8 aborts")
    assert storage.read(INDEX) == struct.pack(">hqqqq", 0, 7, 0, 2, 1) + struct.pack(">hqqqq", 0, 8, 1, 3, 4)


def test_an_entry_stands_with_the_segment_of_its_marker(storage: MemoryStorage) -> None:
    log = new_log(storage, replace(SMALL, segment_bytes=200))
    written(log, "7 writes", "8 writes", "- writes", "7 aborts", "- writes", "- writes", "8 aborts")
    with_index = [name for name in storage.list("t-0") if name.endswith(".txnindex")]
    assert len(with_index) == 2
    assert aborted(log, 4, 5) == [(8, 1, 6, 7)], "found though its marker is in a later segment"


def test_truncation_drops_the_entries_of_markers_that_go(storage: MemoryStorage) -> None:
    log = written(new_log(storage), "7 writes", "7 aborts", "7 writes", "7 aborts", "- writes")
    log.truncate_to(3)
    assert aborted(log) == [(7, 0, 1, 2)]
    assert log.first_unstable_offset(3) == 2, "the second transaction is open again"
    end_transaction(log, commits=True)
    assert log.first_unstable_offset(4) is None
    log.truncate_fully_and_start_at(10)
    assert (aborted(log), len(log.producers)) == ([], 0)


def test_what_a_power_loss_takes_of_the_index_is_made_anew(storage: MemoryStorage) -> None:
    log = written(new_log(storage), "7 writes", "7 aborts")
    log.flush()
    written(log, "8 writes", "8 aborts")
    storage.lose_power()
    again, _ = opened(storage, recovery_point=2)
    assert (again.log_end_offset, aborted(again)) == (2, [(7, 0, 1, 2)])


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(b"", "lost", id="that is missing is made anew after a crash"),
        pytest.param(b"\0" * 33, "cut", id="that ends within an entry is made anew whatever the stop"),
        pytest.param(struct.pack(">hqqqq", 0, 7, 0, -5, 2), "odd", id="whose markers are before its segment, too"),
    ],
)
def test_an_index(storage: MemoryStorage, data: bytes, what: str) -> None:
    written(new_log(storage), "7 writes", "7 aborts")
    storage.files[INDEX].data[:] = data
    again, _ = opened(storage, clean=what != "lost", recovery_point=2 if what != "lost" else 0)
    assert aborted(again) == [(7, 0, 1, 2)]


@pytest.mark.parametrize("clean", [pytest.param(True, id="clean stop"), pytest.param(False, id="kill")])
def test_a_segment_without_any_index_gets_all_of_them(storage: MemoryStorage, clean: bool) -> None:
    log = new_log(storage, replace(SMALL, segment_bytes=200))
    written(log, "7 writes", "7 aborts", "- writes", "- writes", "- writes", "8 writes", "8 aborts", "- writes")
    before = aborted(log)
    log.flush()
    log.seal()
    log.close()
    for name in storage.list("t-0"):
        if name.endswith("index"):
            storage.remove(f"t-0/{name}")
    again, _ = opened(storage, clean=clean, recovery_point=log.log_end_offset)
    assert len(again.segments) > 2
    assert aborted(again) == before == [(7, 0, 1, 2), (8, 5, 6, 7)]


def test_with_the_planted_bug_recovery_forgets_what_was_aborted(storage: MemoryStorage) -> None:
    written(new_log(storage), "7 writes", "7 aborts")
    assert aborted(opened(storage, rules=rules_with(["aborted-forgotten-at-recovery"]))[0]) == []


# --- allowed writes ---


def refused(act: Callable[[], object]) -> str:
    try:
        act()
    except InvalidRecords as refusal:
        return refusal.error_code.name
    return "written"


@pytest.mark.parametrize(
    ("producer_epoch", "coordinator_epoch", "answer", "bugs"),
    [
        pytest.param(2, 5, "written", [], id="the same epochs"),
        pytest.param(3, 6, "written", [], id="later epochs"),
        pytest.param(1, 5, "INVALID_PRODUCER_EPOCH", [], id="an older producer epoch"),
        pytest.param(2, 4, "TRANSACTION_COORDINATOR_FENCED", [], id="an older coordinator epoch"),
        pytest.param(2, 4, "written", ["markers-of-old-coordinators"], id="with the planted bug"),
        pytest.param(1, 5, "written", ["zombie-producer"], id="with the planted bug of producer epochs"),
    ],
)
def test_a_marker_is_fenced(producer_epoch: int, coordinator_epoch: int, answer: str, bugs: list[str]) -> None:
    log, _ = opened(MemoryStorage(), rules=rules_with(bugs))
    end_transaction(log, commits=True, producer_epoch=2, coordinator_epoch=5)
    sent = {"producer_epoch": producer_epoch, "coordinator_epoch": coordinator_epoch}
    assert refused(lambda: end_transaction(log, commits=False, **sent)) == answer


def test_a_marker_raises_the_producers_epoch_and_fences_its_former_life() -> None:
    log = written(new_log(), "7 writes")
    end_transaction(log, commits=False, producer_epoch=1)
    assert refused(lambda: write_in_transaction(log, 1)) == "INVALID_PRODUCER_EPOCH"
    assert write_in_transaction(log, 0, producer_epoch=1).base_offset == 2


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        pytest.param(from_producer(1), "INVALID_TXN_STATE", id="without a transaction while one is open"),
        pytest.param(in_transaction(1), "written", id="in the open transaction, without being verified again"),
        pytest.param(in_transaction(0), "written", id="once more"),
        pytest.param(in_transaction(3), "OUT_OF_ORDER_SEQUENCE_NUMBER", id="with a gap"),
        pytest.param(in_transaction(0, producer_id=8), "INVALID_TXN_STATE", id="in one that is not verified"),
        pytest.param(
            marker_batch(Marker(True, 0), producer_id=7, producer_epoch=0, timestamp_ms=0),
            "INVALID_RECORD",
            id="a marker",
        ),
    ],
)
def test_a_producer_sends(sent: bytes, answer: str) -> None:
    log = written(new_log(), "7 writes")
    assert refused(lambda: log.append_as_leader(sent, 0)) == answer


def test_without_verification_a_transaction_begins_at_once() -> None:
    log = new_log(settings=replace(SMALL, verify_transactions=False))
    log.append_as_leader(in_transaction(0), 0)
    assert log.first_unstable_offset(1) == 0


@pytest.mark.parametrize(
    ("bugs", "answer"),
    [pytest.param([], "INVALID_TXN_STATE", id="right"), pytest.param(["late-verification"], "written", id="bug")],
)
def test_a_verification_that_a_marker_has_overtaken_counts_for_nothing(bugs: list[str], answer: str) -> None:
    log, _ = opened(MemoryStorage(), rules=rules_with(bugs))
    sent = in_transaction(0)
    verification = log.producer_history.verifications.begin(headers(sent)[0], 0)
    end_transaction(log, commits=False)
    log.producer_history.verifications.begin(headers(sent)[0], 0)
    assert refused(lambda: log.append_as_leader(sent, 0, verification=verification)) == answer


def test_no_batch_comes_before_an_earlier_one_that_waits_for_its_verification() -> None:
    log = new_log()
    history = log.producer_history
    for sequence in (3, 2):
        verification = history.verifications.begin(headers(in_transaction(sequence))[0], 0)
    append = partial(log.append_as_leader, leader_epoch=0, verification=verification)
    answers = [refused(partial(append, in_transaction(sequence))) for sequence in (3, 2)]
    assert answers == ["OUT_OF_ORDER_SEQUENCE_NUMBER", "written"]


@pytest.mark.parametrize(
    ("bugs", "left"), [pytest.param([], [7], id="right"), pytest.param(["open-transaction-forgotten"], [], id="bug")]
)
def test_a_producer_with_an_open_transaction_does_not_expire(bugs: list[str], left: list[int]) -> None:
    log, _ = opened(MemoryStorage(), rules=rules_with(bugs))
    written(log, "7 writes", "8 writes", "8 commits")
    log.producer_history.expire(1000)
    assert [producer_id for producer_id, _ in log.producers.items()] == left


@pytest.mark.parametrize(
    ("bugs", "left"), [pytest.param([], [7], id="right"), pytest.param(["producer-age-by-batches"], [], id="bug")]
)
def test_a_marker_counts_as_a_write_of_its_producer(bugs: list[str], left: list[int]) -> None:
    log, _ = opened(MemoryStorage(), rules=rules_with(bugs))
    written(log, "7 writes")
    end_transaction(log, commits=False, producer_epoch=1, timestamp_ms=2000)
    log.producer_history.expire(1000)
    assert [producer_id for producer_id, _ in log.producers.items()] == left


def test_a_marker_holds_what_was_decided() -> None:
    for marker in (Marker(True, 3), Marker(False, 9)):
        data = marker_batch(marker, producer_id=7, producer_epoch=1, timestamp_ms=50)
        header = headers(data)[0]
        assert (read_marker(data, header), header.base_sequence, header.attributes) == (marker, -1, 0x30)


def test_an_unknown_control_record_ends_nothing() -> None:
    log = written(new_log(), "7 writes")
    data = bytearray(marker_batch(Marker(True, 0), producer_id=7, producer_epoch=0, timestamp_ms=0))
    follower = new_log()
    follower.append_as_follower(everything(log))
    position = data.rindex(b"\x00\x00\x00\x01")
    data[position + 3] = 5
    seal(data)
    assign(data, 1, 0)
    assert follower.append_as_follower(bytes(data)).markers == []
    assert follower.first_unstable_offset(2) == 0


# --- snapshots ---


def test_a_snapshot_is_written_when_a_segment_begins_and_at_a_clean_stop(storage: MemoryStorage) -> None:
    log = new_log(storage, replace(SMALL, segment_bytes=200))
    written(log, "7 writes", "7 aborts", "7 writes")
    log.flush()
    log.seal()
    bases = [segment.base_offset for segment in log.segments[1:]]
    names = [name for name in storage.list("t-0") if name.endswith(".snapshot")]
    assert names == [f"{offset:020d}.snapshot" for offset in [*bases, 3]]
    assert storage.read(f"t-0/{names[-1]}")[6:] == struct.pack(">iqhiqiqiq", 1, 7, 0, 1, 2, 0, 0, 0, 2)


@pytest.mark.parametrize("damage", ["none", "last byte", "version", "empty"])
def test_a_start_reads_the_latest_snapshot_that_is_sound(storage: MemoryStorage, damage: str) -> None:
    log = new_log(storage, replace(SMALL, segment_bytes=200))
    written(log, *["7 writes", "8 writes", "7 aborts"] * 4)
    log.flush()
    log.seal()
    log.close()
    last = max(name for name in storage.files if name.endswith(".snapshot"))
    data = storage.files[last].data
    if damage == "last byte":
        data[-1] ^= 1
    elif damage == "version":
        data[1] = 9
    elif damage == "empty":
        data.clear()
    again, _ = opened(storage, clean=True, recovery_point=12)
    deque_of = {
        key: (state.epoch, state.transaction_start, state.coordinator_epoch) for key, state in again.producers.items()
    }
    assert deque_of == {7: (0, None, 0), 8: (0, 1, -1)}
    assert storage.exists(last) == (damage == "none")
    assert again.first_unstable_offset(12) == 1


def test_a_late_retry_is_known_after_a_restart(storage: MemoryStorage) -> None:
    log = new_log(storage)
    for sequence in range(9):
        log.append_as_leader(from_producer(sequence), 0)
    log.flush()
    log.seal()
    log.close()
    again, _ = opened(storage, clean=True, recovery_point=9)
    assert len(again.producers[7].batches) == 1, "as the snapshot has it"
    assert again.append_as_leader(from_producer(4), 0).base_offset == 4
    assert refused(lambda: again.append_as_leader(from_producer(3), 0)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert again.append_as_leader(from_producer(9), 0).base_offset == 9


def test_producers_outlive_their_records(storage: MemoryStorage) -> None:
    log = new_log(storage, replace(SMALL, segment_bytes=200))
    log.append_as_leader(from_producer(0), 0)
    for _ in range(4):
        log.append_as_leader(batch(), 0)
    log.delete_oldest(len(log.segments) - 1)
    log.flush()
    log.seal()
    log.close()
    again, _ = opened(storage, clean=True, recovery_point=5, log_start_offset=log.log_start_offset)
    assert refused(lambda: again.append_as_leader(from_producer(5), 0)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert again.append_as_leader(from_producer(1), 0).base_offset == 5


# --- what a model says ---

steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(7, 9)),
        st.tuples(st.just("commit"), st.integers(7, 9)),
        st.tuples(st.just("abort"), st.integers(7, 9)),
        st.tuples(st.just("truncate"), st.integers(1, 4)),
        st.tuples(st.just("crash"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=40,
)


def expected(log: Log) -> tuple[list[AbortedTransaction], int | None]:
    """What the batches of a log say: aborted transactions by offsets, and where the first open one begins."""
    open_since: dict[int, int] = {}
    gone = []
    for header in headers(everything(log)):
        if not header.is_control:
            open_since.setdefault(header.producer_id, header.base_offset)
            continue
        data = log.read(header.base_offset, max_bytes=1, up_to=LATEST, at_least_one=True)
        marker, first = read_marker(data, header), open_since.pop(header.producer_id, None)
        if marker is not None and first is not None and not marker.commits:
            stable = min(open_since.values(), default=header.base_offset + 1)
            gone.append(AbortedTransaction(header.producer_id, first, header.base_offset, stable))
    return gone, min(open_since.values(), default=None)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps)
def test_index_and_stable_offset_are_always_what_the_batches_say(steps: list[tuple[str, int]]) -> None:
    """On the leader and on a follower that has the same batches."""
    storage = MemoryStorage()
    small = replace(SMALL, segment_bytes=250)
    log = new_log(storage, small)
    for kind, argument in steps:
        if kind == "write":
            written(log, f"{argument} writes")
        elif kind in ("commit", "abort"):
            end_transaction(log, commits=kind == "commit", producer_id=argument)
        elif kind == "truncate":
            log.truncate_to(max(0, log.log_end_offset - argument))
        else:
            log.flush()
            if kind == "restart":
                log.seal()
            log.close()
            log, _ = opened(storage, clean=kind == "restart", recovery_point=log.recovery_point, settings=small)
    follower = new_log(settings=small)
    follower.append_as_follower(everything(log))
    for each in (log, follower):
        assert (each.aborted_transactions(0, LATEST), each.first_unstable_offset(LATEST)) == expected(log)
