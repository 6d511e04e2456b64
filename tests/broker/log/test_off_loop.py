"""While a thread waits for the disk the loop goes on, and nothing that is done meanwhile is undone by the thread."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.broker.log.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from harness.broker.log.directory import LogDirectory
from harness.broker.log.file_storage import FileStorage
from harness.broker.log.log import Log
from harness.broker.log.manager import CLEAN_SHUTDOWN_MARKER, LogManager
from tests.broker.log.logs import SMALL, batch, everything, headers

pytestmark = pytest.mark.real_time("a real disk, for which a thread of its own waits")

AT_MOST_S = 120


class SlowDisk:
    """Blocks syncs from another thread, until it is let go on or broken."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.quick = 0
        """So many syncs of threads go through first."""
        self._sync, self._loop_thread = os.fsync, threading.get_ident()
        self._reached, self._goes_on = threading.Event(), threading.Event()

    def fsync(self, descriptor: int) -> None:
        if threading.get_ident() != self._loop_thread:
            if self.quick:
                self.quick -= 1
            else:
                self._reached.set()
                assert self._goes_on.wait(AT_MOST_S)
            if self.error is not None:
                raise self.error
        self._sync(descriptor)

    def go_on(self) -> None:
        self._goes_on.set()

    async def reached_by(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Let `work` begin beside the test; its thread waits for the disk when this returns."""
        task = asyncio.create_task(work)
        assert await asyncio.to_thread(self._reached.wait, AT_MOST_S)
        return task


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    slow = SlowDisk()
    monkeypatch.setattr(os, "fsync", slow.fsync)
    return slow


@pytest.fixture
def storage(tmp_path: Path) -> FileStorage:
    storage = FileStorage(tmp_path)
    storage.make_folder("t-0")
    storage.replace("t-0/file", b"old")
    return storage


def contents(tmp_path: Path) -> dict[str, bytes]:
    """Every file, temporary ones too."""
    return {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("act", "in_place", "left"),
    [
        pytest.param(lambda storage: None, True, {"t-0/file": b"new"}, id="nothing else is done"),
        pytest.param(
            lambda storage: storage.replace("t-0/other", b"x"),
            True,
            {"t-0/file": b"new", "t-0/other": b"x"},
            id="another file is replaced",
        ),
        pytest.param(
            lambda storage: storage.replace("t-0/file", b"newer"), False, {"t-0/file": b"newer"}, id="it is replaced"
        ),
        pytest.param(lambda storage: storage.remove("t-0/file"), False, {}, id="it is removed"),
        pytest.param(lambda storage: storage.remove("t-0"), False, {}, id="its folder is removed"),
        pytest.param(
            lambda storage: storage.rename("t-0/file", "t-0/moved"), False, {"t-0/moved": b"old"}, id="it is renamed"
        ),
    ],
)
async def test_what_is_done_to_a_file_that_a_thread_writes_comes_after_it(
    disk: SlowDisk,
    storage: FileStorage,
    tmp_path: Path,
    act: Callable[[FileStorage], None],
    in_place: bool,
    left: dict[str, bytes],
) -> None:
    writing = await disk.reached_by(storage.replace_off_loop("t-0/file", b"new"))
    assert (storage.read("t-0/file"), storage.exists("t-0/file"), storage.list("t-0")) == (b"new", True, ["file"])
    act(storage)
    before = {path: storage.read(path) for path in left}
    disk.go_on()
    assert await writing is in_place
    assert contents(tmp_path) == before == left


async def test_a_folder_that_moves_does_not_take_along_what_a_thread_writes(
    disk: SlowDisk, storage: FileStorage, tmp_path: Path
) -> None:
    writing = await disk.reached_by(storage.replace_off_loop("t-0/file", b"new"))
    storage.rename("t-0", "t-0.0-delete")
    disk.go_on()
    assert not await writing
    assert storage.list("") == ["t-0.0-delete"]
    assert (storage.list("t-0.0-delete"), storage.read("t-0.0-delete/file")) == (["file"], b"old")


async def test_a_file_whose_folder_has_gone_before_its_turn_came_is_not_missed(
    disk: SlowDisk, storage: FileStorage
) -> None:
    first = await disk.reached_by(storage.replace_off_loop("first", b""))
    waiting = asyncio.create_task(storage.replace_off_loop("t-0/file", b"new"))
    await asyncio.sleep(0)
    storage.remove("t-0")
    disk.go_on()
    assert (await first, await waiting, storage.list("")) == (True, False, ["first"])


async def test_of_several_threads_the_last_one_wins(disk: SlowDisk, storage: FileStorage, tmp_path: Path) -> None:
    first = await disk.reached_by(storage.replace_off_loop("t-0/file", b"1"))
    others = [asyncio.create_task(storage.replace_off_loop("t-0/file", data)) for data in (b"2", b"3")]
    await asyncio.sleep(0)
    disk.go_on()
    assert [await task for task in (first, *others)] == [False, False, True]
    assert contents(tmp_path) == {"t-0/file": b"3"}


@pytest.mark.parametrize("replaced", [False, True], ids=["is put in place all the same", "gives way to a later one"])
async def test_what_a_cancelled_task_wanted_to_write(
    disk: SlowDisk, storage: FileStorage, tmp_path: Path, replaced: bool
) -> None:
    writing = await disk.reached_by(storage.replace_off_loop("t-0/file", b"new"))
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    if replaced:
        storage.replace("t-0/file", b"newer")
    disk.go_on()
    await storage.replace_off_loop("other", b"")  # threads write one after the other
    assert contents(tmp_path) == {"t-0/file": b"newer" if replaced else b"new", "other": b""}


async def test_an_absent_file_is_there_as_soon_as_a_thread_is_to_write_it(disk: SlowDisk, storage: FileStorage) -> None:
    writing = await disk.reached_by(storage.replace_off_loop("t-0/absent", b"new"))
    assert (storage.exists("t-0/absent"), storage.read("t-0/absent")) == (True, b"new")
    storage.remove("t-0/absent")
    assert not storage.exists("t-0/absent")
    disk.go_on()
    assert not await writing
    assert storage.list("t-0") == ["file"]


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda storage, file: None, id="nothing else"),
        pytest.param(lambda storage, file: file.close(), id="the file is closed"),
        pytest.param(lambda storage, file: storage.rename("t-0", "t-1"), id="its folder is renamed"),
        pytest.param(lambda storage, file: (file.close(), storage.remove("t-0")), id="its folder is removed"),
        pytest.param(lambda storage, file: file.append(b"more"), id="it grows"),
    ],
)
async def test_a_sync_off_the_loop_bears_what_is_done_meanwhile(
    disk: SlowDisk, storage: FileStorage, act: Callable[..., Any]
) -> None:
    file = storage.open_append("t-0/file.log")
    file.append(b"data")
    syncing = await disk.reached_by(file.sync_off_loop())
    act(storage, file)
    disk.go_on()
    await syncing
    file.close()


async def test_an_error_in_a_thread_takes_the_directory_offline_on_the_loop(
    disk: SlowDisk, storage: FileStorage
) -> None:
    heard: list[tuple[str, int]] = []
    directory = LogDirectory(storage)
    directory.on_failure(lambda error: heard.append((str(error), threading.get_ident())))
    file = directory.open_append("t-0/file.log")
    disk.error = OSError("input/output error")
    writing = await disk.reached_by(directory.replace_off_loop("t-0/file", b"new"))
    syncing = asyncio.create_task(file.sync_off_loop())
    await asyncio.sleep(0)
    assert not directory.failed
    disk.go_on()
    for task in (writing, syncing):
        with pytest.raises(OSError, match="input/output error"):
            await task
    assert heard == [("input/output error", threading.get_ident())]
    assert (directory.failed, storage.read("t-0/file")) == (True, b"old")
    file.close()


# --- logs ---


@pytest.fixture
def logs(tmp_path: Path) -> LogManager:
    """Logs of two partitions, of three segments each, none of them synced."""
    logs = LogManager(LogDirectory(FileStorage(tmp_path / "data")), SMALL)
    logs.load()
    for partition in (0, 1):
        fill(logs.get_or_create("t", partition))
    return logs


def fill(log: Log) -> None:
    for _ in range(10):
        log.append_as_leader(batch(2, timestamp_ms=log.log_end_offset), 1)


def checkpoint(tmp_path: Path, name: str) -> dict[tuple[str, int], int]:
    return read_offsets(FileStorage(tmp_path / "data"), name)


async def test_a_log_that_is_deleted_while_high_watermarks_are_written_is_not_among_them(
    disk: SlowDisk, logs: LogManager, tmp_path: Path
) -> None:
    writing = await disk.reached_by(logs.checkpoint_high_watermarks({("t", 0): 20, ("t", 1): 18}))
    logs.delete("t", 0)
    disk.go_on()
    assert not await writing
    assert checkpoint(tmp_path, HIGH_WATERMARKS) == logs.read_high_watermarks() == {("t", 1): 18}


def grown(logs: LogManager) -> None:
    fill(logs.get_or_create("t", 0))


def cut(logs: LogManager) -> None:
    """Cut into a segment that is being synced, and continue there with unsynced data."""
    log = logs.get_or_create("t", 0)
    log.truncate_to(10)
    fill(log)


def cut_at_the_end_of_what_is_full(logs: LogManager) -> None:
    log = logs.get_or_create("t", 0)
    log.truncate_to(16)
    fill(log)


def cut_at_the_end_of_what_was_full(logs: LogManager) -> None:
    logs.get_or_create("t", 0, replace(SMALL, segment_bytes=4000))
    cut_at_the_end_of_what_is_full(logs)


def shortened(logs: LogManager) -> None:
    logs.get_or_create("t", 0).delete_oldest(1)


def emptied(logs: LogManager) -> None:
    logs.get_or_create("t", 0).truncate_fully_and_start_at(7)


@pytest.mark.parametrize(
    ("act", "recovery_points"),
    [
        pytest.param(lambda logs: None, {("t", 0): 16, ("t", 1): 16}, id="nothing else is done"),
        pytest.param(grown, {("t", 0): 16, ("t", 1): 16}, id="the log grows"),
        pytest.param(cut, {("t", 0): 0, ("t", 1): 16}, id="the log is cut back and grows again"),
        pytest.param(
            cut_at_the_end_of_what_is_full, {("t", 0): 0, ("t", 1): 16}, id="the log is cut back to what is full"
        ),
        pytest.param(shortened, {("t", 0): 16, ("t", 1): 16}, id="the first segment is deleted"),
        pytest.param(emptied, {("t", 0): 7, ("t", 1): 16}, id="the log begins anew"),
        pytest.param(lambda logs: logs.delete("t", 0), {("t", 1): 16}, id="the log is deleted"),
    ],
)
async def test_a_recovery_point_is_no_further_than_what_was_synced(
    disk: SlowDisk,
    logs: LogManager,
    tmp_path: Path,
    act: Callable[..., Any],
    recovery_points: dict[tuple[str, int], int],
) -> None:
    work = await disk.reached_by(logs.checkpoint_recovery_points())
    act(logs)
    read = {log.folder: everything(log) for log in logs.logs()}
    disk.go_on()
    await work
    assert checkpoint(tmp_path, RECOVERY_POINTS) == recovery_points
    logs.close()
    again = LogManager(FileStorage(tmp_path / "data"), SMALL)
    again.load()
    assert {log.folder: everything(log) for log in again.logs()} == read
    again.close()


@pytest.mark.parametrize("quick", [0, 1, 7])
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda logs: None, id="nothing else is done"),
        pytest.param(grown, id="the log grows"),
        pytest.param(cut, id="the log is cut back and grows again"),
        pytest.param(cut_at_the_end_of_what_is_full, id="the log is cut back to what is full"),
        pytest.param(cut_at_the_end_of_what_was_full, id="the log is cut back to what is no longer full"),
        pytest.param(shortened, id="the first segment is deleted"),
        pytest.param(lambda logs: logs.delete("t", 0), id="the log is deleted"),
    ],
)
async def test_an_index_that_is_written_meanwhile_is_right_or_absent(
    disk: SlowDisk,
    logs: LogManager,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    act: Callable[..., Any],
    quick: int,
) -> None:
    logs.delete("t", 1)
    log = logs.get_or_create("t", 0)
    log.flush()
    disk.quick = quick
    work = await disk.reached_by(log.flush_rolled())
    act(logs)
    disk.go_on()
    await work
    for log in logs.logs():
        check_index(log)
    logs.close_clean()
    again = LogManager(FileStorage(tmp_path / "data"), SMALL)
    again.load()
    for log in again.logs():
        check_index(log)
    again.close()
    assert "index.wrong" not in caplog.text


def inode(path: Path) -> int:
    return path.stat().st_ino


def check_index(log: Log) -> None:
    """Every offset is found, and each segment knows the time of its last record."""
    for offset in range(log.log_start_offset, log.log_end_offset):
        (first, *_) = headers(log.read(offset, max_bytes=1, up_to=log.log_end_offset, at_least_one=True))
        assert first.base_offset <= offset <= first.last_offset
    assert [segment.max_timestamp for segment in log.segments] == [each.next_offset - 1 for each in log.segments]


async def test_a_clean_stop_comes_after_a_checkpoint_that_is_under_way(
    disk: SlowDisk, logs: LogManager, tmp_path: Path
) -> None:
    work = await disk.reached_by(logs.checkpoint_recovery_points())
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    logs.close_clean()
    disk.go_on()
    await FileStorage(tmp_path).replace_off_loop("other", b"")
    assert checkpoint(tmp_path, RECOVERY_POINTS) == {("t", 0): 20, ("t", 1): 20}
    assert (tmp_path / "data" / CLEAN_SHUTDOWN_MARKER).exists()


async def test_the_first_sync_of_a_new_file_makes_every_name_on_the_way_to_it_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    storage = FileStorage(tmp_path)
    storage.make_folder("t-0")
    assert synced == []
    way = {inode(tmp_path), inode(tmp_path / "t-0")}
    for number in range(2):
        file = storage.open_append(f"t-0/{number}")
        itself = inode(tmp_path / "t-0" / str(number))
        for expected in ({itself, *way}, {itself}):
            if number:
                file.sync()
            else:
                await file.sync_off_loop()
            assert set(synced) == expected
            synced.clear()
        file.close()
