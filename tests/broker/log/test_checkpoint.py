import pytest

from harness.broker.log.checkpoint import MalformedCheckpoint, read_epochs, read_offsets, write_epochs, write_offsets
from harness.broker.log.epoch_cache import EpochEntry
from harness.broker.log.storage import StorageError
from harness.simulation.disk import MemoryStorage


def holding(data: bytes) -> MemoryStorage:
    storage = MemoryStorage()
    storage.replace("file", data)
    return storage


def test_epochs_are_written_as_kafka_writes_them(storage: MemoryStorage) -> None:
    write_epochs(storage, "file", [EpochEntry(0, 0), EpochEntry(7, 123)])
    assert storage.read("file") == b"0\n2\n0 0\n7 123\n"
    assert read_epochs(storage, "file") == [(0, 0), (7, 123)]


def test_offsets_are_written_as_kafka_writes_them_and_sorted(storage: MemoryStorage) -> None:
    write_offsets(storage, "file", {("b", 0): 5, ("a", 10): 0, ("a", 9): 2**40})
    assert storage.read("file") == b"0\n3\na 9 1099511627776\na 10 0\nb 0 5\n"
    assert read_offsets(storage, "file") == {("a", 9): 2**40, ("a", 10): 0, ("b", 0): 5}


def test_an_absent_file_has_no_entries() -> None:
    assert (read_epochs(MemoryStorage(), "file"), read_offsets(MemoryStorage(), "file")) == ([], {})


def test_a_file_without_entries(storage: MemoryStorage) -> None:
    write_epochs(storage, "file", [])
    assert (storage.read("file"), read_epochs(storage, "file")) == (b"0\n0\n", [])


@pytest.mark.parametrize(
    ("data", "where"),
    [
        pytest.param(b"", "line 1", id="an empty file"),
        pytest.param(b"1\n0\n", "line 1", id="another version"),
        pytest.param(b"0\n", "line 2", id="no count"),
        pytest.param(b"0\nx\n", "line 2", id="a count that is no number"),
        pytest.param(b"0\n-1\n", "line 2", id="a count below zero"),
        pytest.param(b"0\n2\n1 1\n", "line 2", id="fewer lines than announced"),
        pytest.param(b"0\n1\n1 1\n2 2\n", "line 2", id="more lines than announced"),
        pytest.param(b"0\n1\n1\n", "line 3", id="a field is missing"),
        pytest.param(b"0\n2\n1 1\n2 x\n", "line 4", id="a field that is no number"),
        pytest.param(b"0\n2\n1 1\n1 2\n", "line 4", id="an epoch twice"),
        pytest.param(b"0\n2\n1 5\n2 5\n", "line 4", id="a start offset twice"),
        pytest.param(b"\xff\xfe\n", "not text", id="no text at all"),
    ],
)
def test_a_malformed_epoch_checkpoint_is_a_storage_error_that_says_where(data: bytes, where: str) -> None:
    with pytest.raises(MalformedCheckpoint, match=where) as error:
        read_epochs(holding(data), "file")
    assert isinstance(error.value, StorageError)
    assert "file" in str(error.value)


@pytest.mark.parametrize("line", [b"t 0", b"t 0 1 2", b"t x 1", b"t 0 -1"])
def test_a_malformed_offset_checkpoint_is_a_storage_error(line: bytes) -> None:
    with pytest.raises(MalformedCheckpoint, match="line 3"):
        read_offsets(holding(b"0\n1\n" + line + b"\n"), "file")
