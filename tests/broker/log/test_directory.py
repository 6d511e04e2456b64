"""A data directory notes the first error of its disk, passes it on, and is not touched again."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.log.directory import DirectoryOffline, LogDirectory
from harness.broker.log.manager import LogManager
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import batch


class BrokenFile:
    size = 0

    def fail(self, *_: object) -> bytes:
        raise OSError("input/output error")

    append = read = truncate = sync = fail

    def close(self) -> None: ...


class BrokenStorage(MemoryStorage):
    def open_append(self, path: str) -> Any:
        return BrokenFile()

    def rename(self, old: str, new: str) -> None:
        raise OSError("read-only file system")


def listened(storage: MemoryStorage) -> tuple[LogDirectory, list[str]]:
    heard: list[str] = []
    directory = LogDirectory(storage)
    directory.on_failure(lambda error: heard.append(str(error)))
    return directory, heard


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda file: file.append(b"x"), id="append"),
        pytest.param(lambda file: file.read(0, 1), id="read"),
        pytest.param(lambda file: file.truncate(0), id="truncate"),
        pytest.param(lambda file: file.sync(), id="sync"),
    ],
)
def test_the_first_error_of_a_file_is_told_once_and_raised_every_time(act: Callable[..., Any]) -> None:
    directory, heard = listened(BrokenStorage())
    file = directory.open_append("f")
    for _ in range(2):
        with pytest.raises(OSError, match="input/output error"):
            act(file)
    assert heard == ["input/output error"]


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda d: d.open_append("g"), id="open"),
        pytest.param(lambda d: d.read("g"), id="read"),
        pytest.param(lambda d: d.replace("g", b""), id="replace"),
        pytest.param(lambda d: d.exists("g"), id="exists"),
        pytest.param(lambda d: d.list(""), id="list"),
        pytest.param(lambda d: d.make_folder("g"), id="make a folder"),
        pytest.param(lambda d: d.move("g", "h"), id="move"),
        pytest.param(lambda d: d.remove("g"), id="remove"),
    ],
)
def test_a_failed_directory_is_not_touched_again(act: Callable[..., Any]) -> None:
    directory, heard = listened(BrokenStorage())
    with pytest.raises(OSError, match="read-only"):
        directory.rename("a", "b")
    with pytest.raises(DirectoryOffline):
        act(directory)
    assert heard == ["read-only file system"]


def test_while_nobody_listens_errors_are_only_raised() -> None:
    directory = LogDirectory(BrokenStorage())
    with pytest.raises(OSError, match="read-only"):
        directory.rename("a", "b")
    assert not directory.failed


def test_a_file_that_is_absent_is_no_failure() -> None:
    directory, heard = listened(MemoryStorage())
    with pytest.raises(FileNotFoundError):
        directory.read("absent")
    assert heard == []


def test_a_failed_directory_is_never_marked_as_cleanly_stopped(storage: MemoryStorage) -> None:
    directory, heard = listened(storage)
    logs = LogManager(directory)
    logs.load()
    log = logs.get_or_create("t", 0)
    storage.space_left = 0
    with pytest.raises(OSError, match="No space left"):
        log.append_as_leader(batch(), 0)
    storage.space_left = None
    with pytest.raises(DirectoryOffline):
        logs.close_clean()
    assert len(heard) == 1
    assert [loaded.clean for loaded in LogManager(storage).load()] == [False]
