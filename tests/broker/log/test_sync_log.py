"""What a broker notes of its syncs, and that no byte is noted before it is on the disk."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.log.file_storage import FileStorage
from harness.broker.log.storage import AppendFile
from harness.broker.log.sync_log import read_syncs, sync_line
from tests.broker.log.test_off_loop import SlowDisk, disk

pytestmark = pytest.mark.real_time("a real disk, for which a thread of its own waits")
__all__ = ["disk"]


class Noted:
    """A disk whose broker notes what it has synced."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder / "data", folder / "sync.log"
        self.storage = FileStorage(self._folder, self._note)

    def _note(self, number: int, size: int, more: bool) -> None:
        with self._log.open("ab") as log:
            log.write(sync_line(number, size, more=more))

    def certain(self) -> dict[str, int]:
        """Return how many bytes of each file are on the disk for certain, by its name."""
        sizes = read_syncs(self._log)
        return {path.name: sizes[path.stat().st_ino] for path in self._folder.iterdir()}


@pytest.fixture
def noted(tmp_path: Path) -> Noted:
    return Noted(tmp_path)


def written(noted: Noted, synced: int) -> AppendFile:
    """Write ten bytes, of which so many are synced."""
    file = noted.storage.open_append("a")
    file.append(bytes(synced))
    if synced:
        file.sync()
    file.append(bytes(10 - synced))
    return file


def renamed(noted: Noted) -> None:
    written(noted, 6)
    noted.storage.move("a", "b")


def made_anew(noted: Noted) -> None:
    written(noted, 6)
    noted.storage.remove("a")
    written(noted, 0)


@pytest.mark.parametrize(
    ("act", "certain"),
    [
        pytest.param(lambda noted: written(noted, 0), {"a": 0}, id="nothing of a new file"),
        pytest.param(lambda noted: written(noted, 6), {"a": 6}, id="what was written before the sync"),
        pytest.param(lambda noted: noted.storage.replace("a", b"12345"), {"a": 5}, id="all of a file that is replaced"),
        pytest.param(lambda noted: written(noted, 6).truncate(4), {"a": 4}, id="less after a cut within it"),
        pytest.param(lambda noted: written(noted, 6).truncate(8), {"a": 6}, id="as much after a cut behind it"),
        pytest.param(renamed, {"b": 6}, id="the same under another name"),
        pytest.param(made_anew, {"a": 0}, id="nothing of a file that was made anew"),
    ],
)
def test_what_is_on_the_disk_for_certain(noted: Noted, act: Callable[[Noted], object], certain: dict[str, int]) -> None:
    act(noted)
    assert noted.certain() == certain


async def test_what_a_thread_syncs_is_certain_when_that_has_returned(disk: SlowDisk, noted: Noted) -> None:
    file = noted.storage.open_append("a")
    file.append(bytes(7))
    syncing = await disk.reached_by(file.sync_off_loop())
    file.append(bytes(3))
    assert noted.certain() == {"a": 0}
    disk.go_on()
    await syncing
    assert noted.certain() == {"a": 7}


async def test_a_cut_during_a_sync_leaves_less_certain(disk: SlowDisk, noted: Noted) -> None:
    file = noted.storage.open_append("a")
    file.append(bytes(7))
    syncing = await disk.reached_by(file.sync_off_loop())
    file.truncate(2)
    file.append(bytes(9))
    disk.go_on()
    await syncing
    assert noted.certain()["a"] <= 2


async def test_a_file_that_a_thread_puts_in_place_is_certain(noted: Noted) -> None:
    assert await noted.storage.replace_off_loop("a", b"123")
    assert noted.certain() == {"a": 3}
    await asyncio.to_thread(noted.storage.replace, "a", b"1234")
    assert noted.certain() == {"a": 4}


@pytest.mark.parametrize(
    "torn", [pytest.param(b"synced 5 1", id="at its end"), pytest.param(b"synced 5 1synced 6 9\n", id="in the middle")]
)
def test_a_torn_line_says_nothing(tmp_path: Path, torn: bytes) -> None:
    log = tmp_path / "sync.log"
    log.write_bytes(sync_line(5, 100, more=True) + sync_line(5, 40, more=False) + torn)
    assert read_syncs(log) == {5: 40}
