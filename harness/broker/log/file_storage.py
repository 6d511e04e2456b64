"""The real disk: `Storage` on a folder of the file system.

A sync can take any time. Writes that need not be waited for are done by a thread, and only the thread waits; everything
else is done by the loop's own thread.

A listener, for power losses, gets by the number of a file (its inode) how many of its bytes are certainly on the disk:
none of a new one, and after a sync has returned those that were written when it began.
"""

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_TEMPORARY = ".tmp"
_TEMPORARY_OFF_LOOP = ".off-loop.tmp"


Synced = Callable[[int, int, bool], None]
"""Receives the number of a file, the bytes that survive a power loss, and whether these are more than before."""


def _nobody(_number: int, _size: int, _more: bool) -> None:
    """Drop the call: there is no listener."""


class _File:
    """An `AppendFile` on a file descriptor."""

    __slots__ = ("_cuts", "_descriptor", "_folder_synced", "_number", "_path", "_size", "_synced")

    def __init__(self, path: Path, synced: Synced) -> None:
        self._path = path
        self._synced = synced
        self._cuts = 0
        self._folder_synced = path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        state = os.fstat(self._descriptor)
        self._size, self._number = state.st_size, state.st_ino
        if not self._folder_synced:
            synced(self._number, 0, True)

    @property
    def size(self) -> int:
        return self._size

    def append(self, data: bytes | bytearray | memoryview) -> None:
        left = memoryview(data)
        position = self._size
        try:
            while left:
                written = os.pwrite(self._descriptor, left, position)
                position += written
                left = left[written:]
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size = position

    def read(self, position: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, position)

    def truncate(self, size: int) -> None:
        if size < self._size:
            os.ftruncate(self._descriptor, size)
            self._size = size
            self._cuts += 1
            self._synced(self._number, size, False)

    def sync(self) -> None:
        os.fsync(self._descriptor)
        _sync_and_close(self._unsynced_folders())
        self._folder_synced = True
        self._synced(self._number, self._size, True)

    async def sync_off_loop(self) -> None:
        descriptors = self._unsynced_folders()
        descriptors.append(os.dup(self._descriptor))  # the thread's own, as the file may be closed or moved meanwhile
        size, cuts = self._size, self._cuts
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, _sync_and_close, descriptors))
        self._folder_synced = True
        if self._cuts == cuts:  # else the present content may be newer
            self._synced(self._number, size, True)

    def _unsynced_folders(self) -> list[int]:
        """Open the folders to sync so that a new file is found again: its folder, and the parent of that."""
        folder = self._path.parent
        return [] if self._folder_synced else [_opened_folder(folder), _opened_folder(folder.parent)]

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """Data that a thread must put in place, unless it is overtaken."""

    data: bytes


class FileStorage:
    """A `Storage` whose paths are relative to `root`, which is created."""

    def __init__(self, root: str | Path, synced: Synced = _nobody) -> None:
        self._synced = synced
        self._root = Path(root)
        self._root.mkdir(parents=True, exist_ok=True)
        self._pending: dict[str, _Pending] = {}
        """By path, the last request; a thread with another one has been overtaken."""
        self._order = threading.Lock()
        """Held for a moment by an overtaking call, and by the thread while it checks for one and renames."""
        self._one_at_a_time = threading.Lock()
        """Held by the writing thread: two would share a temporary file."""

    def open_append(self, path: str) -> _File:
        """Open or create a file."""
        return _File(self._root / path, self._synced)

    def read(self, path: str) -> bytes:
        """Return a whole file; raises FileNotFoundError."""
        pending = self._pending.get(path)
        return (self._root / path).read_bytes() if pending is None else pending.data

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in place of a file, atomically and durably."""
        self._overtake(path)
        target = self._root / path
        temporary = target.with_name(target.name + _TEMPORARY)
        _write_synced(temporary, data, self._synced)
        temporary.replace(target)
        _sync_folder(target.parent)

    async def replace_off_loop(self, path: str, data: bytes) -> bool:
        """Like `replace`, in a thread; return whether `data` was put in place, or overtaken."""
        pending = self._pending[path] = _Pending(data)
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(None, self._put, path, pending))

    def _put(self, path: str, pending: _Pending) -> bool:
        """Write the pending data and put it in place unless a later call has overtaken it; runs in the thread."""
        target = self._root / path
        temporary = target.with_name(target.name + _TEMPORARY_OFF_LOOP)
        with self._one_at_a_time:
            try:
                _write_synced(temporary, pending.data, self._synced)
                with self._order:
                    wanted = self._pending.get(path) is pending
                    if wanted:
                        temporary.replace(target)
                if wanted:
                    _sync_folder(target.parent)
                else:
                    temporary.unlink(missing_ok=True)
            except OSError:
                if self._pending.get(path) is pending:
                    raise
                return False  # its folder is gone
            finally:
                with self._order:
                    if self._pending.get(path) is pending:
                        del self._pending[path]
        return wanted

    async def ready(self) -> None:
        """Return when others have had their turn; the kernel reads ahead."""
        await asyncio.sleep(0)

    def _overtake(self, path: str) -> None:
        """Stop threads from putting pending data in place at a path or below it."""
        with self._order:
            for each in [each for each in self._pending if each == path or each.startswith(f"{path}/")]:
                del self._pending[each]

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return path in self._pending or (self._root / path).exists()

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; an absent folder is empty.

        Temporary files, which a killed process may have left, are skipped.
        """
        folder = self._root / path
        names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
        return sorted(name for name in names if not name.endswith(_TEMPORARY))

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents; one that exists is fine.

        A sync of a new file in it makes its name durable. Otherwise a broker that creates hundreds of empty logs would
        wait for the disk each time, and a log without a synced record is created again (Kafka does not sync here
        either).
        """
        (self._root / path).mkdir(parents=True, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder."""
        pending = self._pending.get(old)
        self._overtake(old)
        source, target = self._root / old, self._root / new
        if pending is not None and not source.exists():
            self.replace(new, pending.data)
            return
        source.rename(target)
        _sync_folder(target.parent)

    def move(self, old: str, new: str) -> None:
        """Rename a file over another one; a journalling file system keeps the order of names, so no sync is needed."""
        self._overtake(old)
        self._overtake(new)
        (self._root / old).replace(self._root / new)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; an absent one is fine."""
        self._overtake(path)
        target = self._root / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def _write_synced(path: Path, data: bytes, synced: Synced) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        synced(os.fstat(file.fileno()).st_ino, len(data), True)


def _opened_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync_folder(folder: Path) -> None:
    _sync_and_close([_opened_folder(folder)])


def _sync_and_close(descriptors: Sequence[int]) -> None:
    try:
        for descriptor in descriptors:
            os.fsync(descriptor)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
