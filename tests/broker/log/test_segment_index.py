"""Where a segment's index lies, what it costs to ask it, and that a wrong one is noticed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.log.file_storage import FileStorage
from harness.broker.log.log import Log, LogSettings
from harness.broker.log.storage import Storage
from harness.simulation.disk import MemoryFile, MemoryStorage
from tests.broker.log.logs import batch, everything, headers, opened
from tests.kafka_tools import kafka_tool, needs_kafka

SETTINGS = LogSettings(segment_bytes=100_000, index_interval_bytes=200)
BATCHES = 3000
"""Two segments and a half, each of about a thousand batches with an entry for every third one."""


class CountingFile(MemoryFile):
    """A file that counts what is read of it."""

    read_bytes = 0

    def read(self, position: int, length: int) -> bytes:
        data = super().read(position, length)
        CountingFile.read_bytes += len(data)
        return data


class CountingStorage(MemoryStorage):
    """A disk that counts what is read of its files, other than whole small ones."""

    def open_append(self, path: str) -> MemoryFile:
        file = super().open_append(path)
        if not isinstance(file, CountingFile):
            file = self.files[path] = CountingFile(self, file.data, file.synced)
        return file


def time_of(number: int) -> int:
    """Timestamps that go up and down, but up in the long run."""
    return 1000 + number * 10 - (number % 7) * 25


def filled(storage: Storage) -> Log:
    """A log of two sealed segments and a third that grows."""
    log, _ = opened(storage, settings=SETTINGS)
    for number in range(BATCHES):
        log.append_as_leader(batch(timestamp_ms=time_of(number)), 0)
    assert len(log.segments) == 3
    log.flush()
    log.seal()
    return log


def first_at(time: int) -> tuple[int, int] | None:
    return next(((number, time_of(number)) for number in range(BATCHES) if time_of(number) >= time), None)


def answers(log: Log) -> list[object]:
    """What a log says to offsets and times all over it."""
    at_offsets = [headers(log.read(o, max_bytes=1, up_to=BATCHES, at_least_one=True)) for o in range(0, BATCHES, 37)]
    return [*at_offsets, *(log.offset_for_timestamp(time) for time in range(0, 32_000, 531))]


def index_files(storage: MemoryStorage) -> list[str]:
    return sorted(path for path in storage.files if path.endswith("index"))


def test_rolled_segments_have_their_index_on_disk_and_the_last_one_has_not(storage: MemoryStorage) -> None:
    log = filled(storage)
    stems = [segment.path.removesuffix(".log") for segment in log.segments]
    assert index_files(storage) == sorted(f"{stem}.{kind}" for stem in stems[:2] for kind in ("index", "timeindex"))


@pytest.mark.parametrize("clean", [True, False], ids=["after a clean stop", "after a crash"])
def test_asking_an_old_segment_reads_a_few_kilobytes_of_it(clean: bool) -> None:
    storage = CountingStorage()
    log = filled(storage)
    point = log.recovery_point
    log.flush()
    log, _ = opened(storage, clean=clean, recovery_point=point, settings=SETTINGS)
    for ask in (
        lambda: log.read(1234, max_bytes=1, up_to=BATCHES, at_least_one=True),
        lambda: log.read(999, max_bytes=500, up_to=BATCHES, at_least_one=True),
        lambda: log.offset_for_timestamp(time_of(1777)),
        lambda: [segment.max_timestamp for segment in log.segments],
    ):
        before = CountingFile.read_bytes
        ask()
        assert CountingFile.read_bytes - before < 60_000
        before = CountingFile.read_bytes
        ask()  # once more: what had to be looked at once a life is known now
        assert CountingFile.read_bytes - before < 25_000


def test_a_start_after_a_clean_stop_reads_nothing_of_old_segments() -> None:
    storage = CountingStorage()
    log = filled(storage)
    log.flush()
    log.seal()
    last = log.segments[-1].size
    before = CountingFile.read_bytes
    opened(storage, clean=True, recovery_point=BATCHES, settings=SETTINGS)
    assert CountingFile.read_bytes - before < last * 2
    log.segments[-1].seal()  # as with a segment of more than a mebibyte
    before = CountingFile.read_bytes
    log, _ = opened(storage, clean=True, recovery_point=BATCHES, settings=SETTINGS)
    assert CountingFile.read_bytes - before < 15_000
    assert log.log_end_offset == BATCHES
    assert log.append_as_leader(batch(timestamp_ms=99_999), 0).base_offset == BATCHES
    assert log.offset_for_timestamp(99_999) == (BATCHES, 99_999)


def test_answers_are_those_of_the_records_whether_the_index_is_sealed_or_not(storage: MemoryStorage) -> None:
    sealed = filled(storage)
    assert [sealed.offset_for_timestamp(time) for time in range(0, 32_000, 531)] == [
        first_at(time) for time in range(0, 32_000, 531)
    ]
    before = answers(sealed)
    for path in index_files(storage):
        storage.remove(path)
    fresh, _ = opened(storage, clean=True, recovery_point=BATCHES, settings=SETTINGS)
    assert answers(fresh) == before


def move(data: bytearray, by: int, at: int, width: int) -> None:
    data[at : at + width] = (int.from_bytes(data[at : at + width]) + by).to_bytes(width)


def move_all(data: bytearray, width: int) -> None:
    for at in range(0, len(data), width):
        move(data, 1, at + 4, 4)


DAMAGE: dict[str, Callable[[MemoryStorage, str], object]] = {
    "it is missing": lambda storage, path: storage.remove(path),
    "it is empty": lambda storage, path: storage.files[path].data.clear(),
    "it lacks half an entry": lambda storage, path: storage.files[path].data.__delitem__(slice(-3, None)),
    "it lacks its second half": lambda storage, path: storage.files[path].data.__delitem__(slice(2400, None)),
    "it is all zeros": lambda storage, path: storage.files[path].data.__setitem__(
        slice(None), bytes(len(storage.files[path].data))
    ),
    "it is noise": lambda storage, path: storage.files[path].data.__setitem__(
        slice(None), bytes(range(1, 121)) * (len(storage.files[path].data) // 120)
    ),
    "its last entry is wrong": lambda storage, path: move(storage.files[path].data, 1, -8, 8),
    "all of its entries are wrong": lambda storage, path: move_all(
        storage.files[path].data, 8 if path.endswith(".index") else 12
    ),
}


@pytest.mark.parametrize("ending", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_a_wrong_index_is_noticed_and_made_anew(
    storage: MemoryStorage, damage: Callable[[MemoryStorage, str], object], ending: str
) -> None:
    log = filled(storage)
    before, path = answers(log), log.segments[1].path.removesuffix(".log") + ending
    log.flush()
    right = {path: bytes(storage.files[path].data) for path in index_files(storage)}
    damage(storage, path)
    log, _ = opened(storage, clean=True, recovery_point=BATCHES, settings=SETTINGS)
    assert answers(log) == before
    assert [segment.max_timestamp for segment in log.segments] == [
        max(time_of(number) for number in range(segment.base_offset, segment.next_offset)) for segment in log.segments
    ]
    await log.flush_rolled()
    assert {path: bytes(storage.files[path].data) for path in index_files(storage)} == right


def test_a_log_cut_back_into_a_sealed_segment_forgets_its_index_and_goes_on(storage: MemoryStorage) -> None:
    log = filled(storage)
    log.truncate_to(log.segments[1].base_offset + 100)
    assert len(index_files(storage)) == 2
    end = log.log_end_offset
    log.append_as_leader(batch(timestamp_ms=50_000), 1)
    assert log.offset_for_timestamp(40_000) == (end, 50_000)
    assert everything(log) == everything(opened(storage, settings=SETTINGS)[0])


def test_recovery_drops_the_index_of_what_it_reads_through(storage: MemoryStorage) -> None:
    log = filled(storage)
    second = log.segments[1].base_offset
    opened(storage, recovery_point=second, settings=SETTINGS)
    assert [path[2:26] for path in index_files(storage)] == ["0/" + "0" * 20 + ".i", "0/" + "0" * 20 + ".t"]


def test_a_deleted_segment_takes_its_index_with_it(storage: MemoryStorage) -> None:
    log = filled(storage)
    log.delete_oldest(2)
    assert index_files(storage) == []


async def test_a_full_disk_leaves_the_index_in_memory(storage: MemoryStorage) -> None:
    log, _ = opened(storage, settings=SETTINGS)
    for number in range(BATCHES):
        log.append_as_leader(batch(timestamp_ms=time_of(number)), 0)
    storage.take = full  # type: ignore[method-assign]
    with pytest.raises(OSError, match="full"):
        await log.flush_rolled()
    assert log.offset_for_timestamp(time_of(100)) == first_at(time_of(100))


def full(size: int) -> None:
    raise OSError("the disk is full")


@pytest.mark.cluster
@pytest.mark.real_time("Kafka's tool is a process of its own, which is waited for")
@needs_kafka
def test_kafka_finds_nothing_wrong_with_an_index(tmp_path: Path) -> None:
    log = filled(FileStorage(tmp_path))
    files = sorted(str(file) for file in (tmp_path / "t-0").glob("*index"))
    assert len(files) == 4
    dump = kafka_tool("kafka.tools.DumpLogSegments", "--verify-index-only", "--files", ",".join(files))
    assert dump.splitlines() == [f"Dumping {file}" for file in files]  # what is wrong would follow
    log.close()
