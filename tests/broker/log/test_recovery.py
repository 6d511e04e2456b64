from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.log.checkpoint import MalformedCheckpoint, read_epochs
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import Heard, batch, everything, new_log, opened, spans

EPOCHS = "t-0/leader-epoch-checkpoint"


def segment(offset: int) -> str:
    return f"t-0/{offset:020d}.log"


def written() -> tuple[MemoryStorage, bytes]:
    """A log of ten batches of two records in segments 0, 8 and 16, with epochs 0 from 0 and 3 from 10."""
    storage = MemoryStorage()
    log = new_log(storage)
    for index in range(10):
        log.append_as_leader(batch(2), 0 if index < 5 else 3)
    assert [s.base_offset for s in log.segments] == [0, 8, 16]
    return storage, everything(log)


def test_what_is_sound_stays() -> None:
    storage, before = written()
    heard = Heard()
    log, loaded = opened(storage, heard=heard)
    assert everything(log) == before
    assert list(log.epochs) == [(0, 0), (3, 10)]
    assert (loaded.log_end_offset, loaded.truncated_bytes, loaded.clean, log.recovery_point) == (20, 0, False, 20)
    assert heard.epochs == []


def test_a_tail_torn_at_any_byte_costs_the_last_batch_only() -> None:
    storage, before = written()
    whole = storage.read(segment(16))
    last = len(whole) // 2
    for size in range(last, len(whole)):
        storage.files[segment(16)].data[:] = whole[:size]
        log, loaded = opened(storage)
        assert (log.log_end_offset, loaded.truncated_bytes) == (18, size - last)
        assert everything(log) == before[: -len(whole) + last]
        assert storage.read(segment(16)) == whole[:last]
        assert log.append_as_leader(batch(), 4).base_offset == 18


def test_a_flipped_bit_anywhere_but_in_the_leader_epoch_costs_its_batch_and_what_follows() -> None:
    storage, _ = written()
    whole = storage.read(segment(16))
    for position in [*range(12), *range(16, len(whole) // 2)]:
        storage.files[segment(16)].data[:] = whole
        storage.files[segment(16)].data[position] ^= 0x10
        log, loaded = opened(storage)
        assert (log.log_end_offset, loaded.truncated_bytes) == (16, len(whole)), f"bit flipped in byte {position}"


@pytest.mark.parametrize(
    ("damage", "log_end"),
    [
        pytest.param(lambda data: data.clear(), 16, id="an empty last file"),
        pytest.param(lambda data: data.__setitem__(slice(0, 8), bytes(8)), 16, id="offsets that go back"),
        pytest.param(lambda data: data.extend(bytes(500)), 20, id="zeros after the end"),
        pytest.param(lambda data: data.extend(b"\xff" * 500), 20, id="ones after the end"),
        pytest.param(lambda data: data.extend(data[-70:]), 20, id="half a batch after the end"),
        pytest.param(lambda data: data.extend(bytes(data)), 20, id="the same batches again"),
    ],
)
def test_damage_to_the_last_segment(damage: Callable[..., Any], log_end: int) -> None:
    storage, before = written()
    damage(storage.files[segment(16)].data)
    log, _ = opened(storage)
    assert log.log_end_offset == log_end
    assert before.startswith(everything(log))


@pytest.mark.parametrize(
    ("damage", "log_end"),
    [
        pytest.param(lambda data: data.__delitem__(slice(-1, None)), 14, id="a torn tail"),
        pytest.param(lambda data: data.__setitem__(65, 0xFF), 8, id="a flipped byte in its first batch"),
        pytest.param(lambda data: data.clear(), 8, id="an empty file"),
        pytest.param(lambda data: data.__delitem__(slice(len(data) // 4 * 3, None)), 14, id="a whole batch lost"),
        pytest.param(lambda data: data.extend(b"x"), 16, id="bytes after the end"),
    ],
)
def test_damage_to_a_segment_in_the_middle_costs_the_later_ones(damage: Callable[..., Any], log_end: int) -> None:
    storage, before = written()
    damage(storage.files[segment(8)].data)
    log, loaded = opened(storage)
    assert log.log_end_offset == log_end
    assert before == everything(log) + before[len(everything(log)) :]
    assert not storage.exists(segment(16))
    assert loaded.truncated_bytes > 0
    assert list(log.epochs) == read_epochs(storage, EPOCHS) == ([(0, 0), (3, 10)] if log_end > 10 else [(0, 0)])


def test_what_lies_before_the_segment_of_the_recovery_point_is_trusted() -> None:
    storage, _ = written()
    storage.files[segment(0)].data[70] ^= 1
    assert opened(storage, recovery_point=8)[0].log_end_offset == 20
    assert opened(storage, recovery_point=7)[0].log_end_offset == 0


def test_the_segment_of_the_recovery_point_is_checked_from_its_start() -> None:
    storage, _ = written()
    storage.files[segment(8)].data[70] ^= 1
    assert opened(storage, recovery_point=15)[0].log_end_offset == 8


def test_a_recovery_point_past_the_end_checks_the_last_segment() -> None:
    storage, _ = written()
    storage.files[segment(16)].data[70] ^= 1
    log, _ = opened(storage, recovery_point=1000)
    assert (log.log_end_offset, log.recovery_point) == (16, 16)


def test_after_a_clean_stop_no_crc_is_checked() -> None:
    storage, _ = written()
    storage.files[segment(16)].data[70] ^= 1
    log, loaded = opened(storage, clean=True, recovery_point=20)
    assert (log.log_end_offset, loaded.clean, log.recovery_point) == (20, True, 20)


def test_even_after_a_clean_stop_half_a_batch_is_dropped() -> None:
    storage, _ = written()
    del storage.files[segment(16)].data[-1:]
    log, loaded = opened(storage, clean=True, recovery_point=20)
    assert (log.log_end_offset, log.recovery_point) == (18, 18)
    assert loaded.truncated_bytes > 0


@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_epoch_checkpoint_is_made_from_the_batches(clean: bool) -> None:
    storage, before = written()
    storage.remove(EPOCHS)
    log, _ = opened(storage, clean=clean, recovery_point=20)
    assert list(log.epochs) == read_epochs(storage, EPOCHS) == [(0, 0), (3, 10)]
    assert everything(log) == before


def test_epochs_that_the_checkpoint_lacks_are_noted_from_the_batches_epoch_0_too() -> None:
    storage, _ = written()
    storage.replace(EPOCHS, b"0\n0\n")
    assert list(opened(storage)[0].epochs) == [(0, 0), (3, 10)]


def test_epochs_that_no_record_has_are_dropped() -> None:
    storage, _ = written()
    storage.replace(EPOCHS, b"0\n4\n0 0\n3 10\n4 20\n5 30\n")
    assert list(opened(storage)[0].epochs) == read_epochs(storage, EPOCHS) == [(0, 0), (3, 10)]


def test_a_malformed_epoch_checkpoint_is_refused() -> None:
    storage, _ = written()
    storage.replace(EPOCHS, b"0\n2\n0 0\n")
    with pytest.raises(MalformedCheckpoint, match="leader-epoch-checkpoint"):
        opened(storage)


def test_the_log_start_is_taken_from_its_checkpoint() -> None:
    storage, _ = written()
    log, _ = opened(storage, log_start_offset=11)
    assert (log.log_start_offset, list(log.epochs)) == (11, [(3, 11)])
    assert spans(log.read(11, max_bytes=1000, up_to=20, at_least_one=True))[0] == (10, 11)


def test_without_a_checkpoint_the_log_starts_with_its_first_segment(storage: MemoryStorage) -> None:
    log = new_log(storage)
    log.truncate_fully_and_start_at(500)
    log.append_as_leader(batch(), 1)
    again, _ = opened(storage)
    assert (again.log_start_offset, again.log_end_offset) == (500, 501)


def test_every_segment_knows_its_end_before_anybody_has_read_it() -> None:
    storage, _ = written()
    log, _ = opened(storage, clean=True, recovery_point=20)
    assert [segment.next_offset for segment in log.segments] == [8, 16, 20]


def test_a_log_that_ends_before_its_start_begins_again_there() -> None:
    storage, _ = written()
    storage.files[segment(0)].data.clear()
    log, loaded = opened(storage, log_start_offset=11)
    assert (log.log_start_offset, log.log_end_offset, loaded.log_end_offset) == (11, 11, 11)
    assert log.append_as_leader(batch(), 7).base_offset == 11


def test_files_of_other_kinds_are_left_alone() -> None:
    storage, before = written()
    for name in ("00000000000000000000.index", "5.log", "00000000000000000000.log.deleted", "partition.metadata"):
        storage.open_append(f"t-0/{name}").append(b"x")
    assert everything(opened(storage)[0]) == before
    assert storage.read("t-0/5.log") == b"x"


def test_an_unclean_start_syncs_what_it_found() -> None:
    storage, before = written()
    opened(storage)
    storage.lose_power()
    assert everything(opened(storage, clean=True, recovery_point=20)[0]) == before


@pytest.mark.parametrize("flushed_after", range(11))
def test_a_power_loss_costs_nothing_that_was_flushed(storage: MemoryStorage, flushed_after: int) -> None:
    log = new_log(storage)
    flushed = b""
    for index in range(10):
        if index == flushed_after:
            log.flush()
            flushed = everything(log)
        log.append_as_leader(batch(2), 1)
    storage.lose_power()
    again, _ = opened(storage, recovery_point=log.recovery_point)
    assert everything(again) == flushed
