import asyncio
import errno
import random
from collections.abc import Callable
from typing import Any

import pytest

from harness.simulation.disk import MemoryStorage


def written(storage: MemoryStorage, path: str, data: bytes, *, synced: bool) -> None:
    file = storage.open_append(path)
    file.append(data)
    if synced:
        file.sync()


def _unsynced(storage: MemoryStorage) -> None:
    written(storage, "a", b"more", synced=False)


def _synced(storage: MemoryStorage) -> None:
    written(storage, "a", b"more", synced=True)


def _cut(storage: MemoryStorage) -> None:
    storage.open_append("a").truncate(1)


def _cut_and_synced(storage: MemoryStorage) -> None:
    _cut(storage)
    storage.open_append("a").sync()


def _new(storage: MemoryStorage) -> None:
    written(storage, "b", b"new", synced=False)


def _new_before_a_sync(storage: MemoryStorage) -> None:
    _new(storage)
    storage.open_append("a").sync()


def _removed(storage: MemoryStorage) -> None:
    storage.remove("a")


def _removed_before_a_replace(storage: MemoryStorage) -> None:
    _removed(storage)
    storage.replace("b", b"whole")


def _moved(storage: MemoryStorage) -> None:
    storage.move("a", "b")


def _moved_before_a_sync(storage: MemoryStorage) -> None:
    _moved(storage)
    storage.open_append("c").sync()


def _renamed(storage: MemoryStorage) -> None:
    storage.rename("a", "b")


@pytest.mark.parametrize(
    ("act", "left"),
    [
        pytest.param(_unsynced, {"a": b"old"}, id="an append that was not synced is gone"),
        pytest.param(_synced, {"a": b"oldmore"}, id="one that was is there"),
        pytest.param(_cut, {"a": b"old"}, id="a truncation that was not synced is undone"),
        pytest.param(_cut_and_synced, {"a": b"o"}, id="one that was is not"),
        pytest.param(_new, {"a": b"old"}, id="a new file that was never synced has no name"),
        pytest.param(_new_before_a_sync, {"a": b"old", "b": b""}, id="any later sync keeps its name, not its bytes"),
        pytest.param(_removed, {"a": b"old"}, id="a removed file comes back"),
        pytest.param(_removed_before_a_replace, {"b": b"whole"}, id="but not after a later sync"),
        pytest.param(_renamed, {"b": b"old"}, id="a rename lasts"),
        pytest.param(_moved, {"a": b"old"}, id="a move does not last"),
        pytest.param(_moved_before_a_sync, {"b": b"old", "c": b""}, id="a move lasts once anything is synced"),
    ],
)
def test_a_power_loss_leaves_what_was_synced(act: Callable[..., Any], left: dict[str, bytes]) -> None:
    storage = MemoryStorage()
    written(storage, "a", b"old", synced=True)
    act(storage)
    storage.lose_power()
    assert {path: bytes(file.data) for path, file in storage.files.items()} == left


def test_a_torn_tail_is_drawn_from_the_seed_and_never_touches_what_was_synced() -> None:
    tails = set()
    for seed in range(40):
        storage = MemoryStorage()
        written(storage, "a", b"s" * 10, synced=True)
        written(storage, "a", bytes(range(100, 120)), synced=False)
        storage.lose_power(random.Random(seed))
        data = bytes(storage.files["a"].data)
        assert data.startswith(b"s" * 10)
        assert len(data) <= 30
        tails.add(data[10:])
    assert len(tails) > 10
    assert any(b"\0" in tail for tail in tails)


def test_what_one_power_loss_has_left_the_next_one_leaves_too() -> None:
    for seed in range(10):
        storage = MemoryStorage()
        written(storage, "a", b"s" * 10, synced=True)
        written(storage, "a", bytes(range(100, 120)), synced=False)
        rng = random.Random(seed)
        storage.lose_power(rng)
        left = bytes(storage.files["a"].data)
        storage.lose_power(rng)
        assert bytes(storage.files["a"].data) == left


def test_a_full_disk_takes_nothing_of_a_write_that_does_not_fit() -> None:
    storage = MemoryStorage(space_left=5)
    file = storage.open_append("a")
    file.append(b"123")
    with pytest.raises(OSError, match="No space") as refused:
        file.append(b"456")
    assert (refused.value.errno, file.size) == (errno.ENOSPC, 3)
    file.append(b"45")


def test_a_file_needs_its_folder() -> None:
    with pytest.raises(FileNotFoundError):
        MemoryStorage().open_append("absent/a")


def test_a_full_disk_takes_no_new_name_and_leaves_what_was_to_be_replaced() -> None:
    storage = MemoryStorage(space_left=10)
    storage.replace("a", b"12345678")
    with pytest.raises(OSError, match="No space left") as refused:
        storage.replace("a", b"123")
    assert refused.value.errno == errno.ENOSPC
    assert storage.read("a") == b"12345678"
    storage.space_left = 0
    with pytest.raises(OSError, match="No space left"):
        storage.make_folder("logs")
    assert not storage.exists("logs")


@pytest.mark.parametrize(
    "free",
    [
        pytest.param(lambda storage: storage.remove("a"), id="what is removed"),
        pytest.param(lambda storage: storage.open_append("a").truncate(0), id="what is cut off"),
    ],
)
def test_space_comes_back_with(free: Callable[[MemoryStorage], None]) -> None:
    storage = MemoryStorage(space_left=8)
    storage.replace("a", b"12345678")
    free(storage)
    storage.replace("b", b"12345678")
    assert storage.space_left == 0


async def test_a_copy_has_what_a_killed_process_leaves_and_changes_nothing() -> None:
    storage = MemoryStorage(space_left=100, sync_s=lambda: 1.0)
    written(storage, "a", b"old", synced=True)
    written(storage, "a", b"more", synced=False)
    writing = asyncio.ensure_future(storage.replace_off_loop("b", b"whole"))
    await asyncio.sleep(0)
    copy = storage.copy()
    assert {path: bytes(file.data) for path, file in copy.files.items()} == {"a": b"oldmore"}, "b is not in its place"
    copy.lose_power()
    assert {path: bytes(file.data) for path, file in copy.files.items()} == {"a": b"old"}
    copy.clear()
    assert storage.read("a") == b"oldmore"
    assert await writing
