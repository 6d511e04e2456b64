import errno
from pathlib import Path

import pytest

from harness.broker.log.file_storage import FileStorage
from harness.broker.log.storage import Storage
from harness.simulation.disk import MemoryStorage
from tests.small_disk import small_disk


@pytest.fixture(params=["on disk", "in memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return FileStorage(tmp_path / "data") if request.param == "on disk" else MemoryStorage()


def test_a_file_grows_at_its_end_and_is_read_anywhere(storage: Storage) -> None:
    file = storage.open_append("a.log")
    file.append(b"0123")
    file.append(memoryview(bytearray(b"4567")))
    assert (file.size, file.read(2, 4), file.read(6, 100), file.read(8, 1)) == (8, b"2345", b"67", b"")
    file.sync()
    file.close()


def test_an_opened_file_goes_on_where_it_ended(storage: Storage) -> None:
    first = storage.open_append("a.log")
    first.append(b"01")
    first.close()
    again = storage.open_append("a.log")
    again.append(b"23")
    assert storage.read("a.log") == b"0123"
    again.close()


@pytest.mark.parametrize(("size", "left"), [(2, b"01"), (0, b""), (4, b"0123"), (9, b"0123")])
def test_truncation_drops_the_end_and_never_grows_a_file(storage: Storage, size: int, left: bytes) -> None:
    file = storage.open_append("a.log")
    file.append(b"0123")
    file.truncate(size)
    assert (storage.read("a.log"), file.size) == (left, len(left))
    file.append(b"x")
    assert storage.read("a.log") == left + b"x"
    file.close()


def test_replace_puts_a_whole_file_in_place_and_leaves_nothing_else(storage: Storage) -> None:
    storage.replace("a", b"old")
    storage.replace("a", b"new")
    assert (storage.read("a"), storage.list("")) == (b"new", ["a"])


def test_folders_are_made_listed_renamed_and_removed_with_all_in_them(storage: Storage) -> None:
    storage.make_folder("t-0/deep")
    storage.make_folder("t-0/deep")
    for name in ("b", "a"):
        storage.open_append(f"t-0/{name}").close()
    assert storage.list("t-0") == ["a", "b", "deep"]
    storage.rename("t-0", "t-1")
    assert (storage.exists("t-0"), storage.list("t-1"), storage.list("")) == (False, ["a", "b", "deep"], ["t-1"])
    storage.remove("t-1/a")
    storage.remove("t-1/a")
    assert storage.list("t-1") == ["b", "deep"]
    storage.remove("t-1")
    storage.remove("t-1")
    assert (storage.list(""), storage.list("absent"), storage.exists("t-1")) == ([], [], False)


def test_a_file_that_is_moved_takes_the_place_of_another_and_can_be_written_on(storage: Storage) -> None:
    storage.replace("b", b"other")
    file = storage.open_append("a")
    file.append(b"moved")
    storage.move("a", "b")
    file.append(b" on")
    file.close()
    assert (storage.list(""), storage.read("b")) == (["b"], b"moved on")


def test_an_absent_file_cannot_be_read(storage: Storage) -> None:
    with pytest.raises(FileNotFoundError):
        storage.read("absent")


def test_a_write_that_does_not_fit_is_cut_back(tmp_path: Path) -> None:
    file = FileStorage(tmp_path).open_append("a.log")
    file.append(b"a" * 900)
    with small_disk(1000), pytest.raises(OSError, match="too large") as refused:
        file.append(b"b" * 900)
    assert refused.value.errno == errno.EFBIG
    assert (file.size, (tmp_path / "a.log").stat().st_size) == (900, 900)
    file.append(b"c" * 100)
    assert (tmp_path / "a.log").read_bytes() == b"a" * 900 + b"c" * 100
    file.close()
