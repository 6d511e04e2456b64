"""A disk in memory: what a power loss leaves of it, a torn tail, a full disk.

Names and contents are durable apart, as on a journalling file system (ext4, ordered): a file's bytes survive once that
file is synced; names (files made, replaced, renamed, removed) survive once *any* later sync has gone through, because
the journal is written in order. The process's own death takes nothing: what was written is with the kernel.
"""

import asyncio
import errno
import os
import posixpath
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from harness.cluster.disks.damage import torn
from harness.simulation.latencies import Wait, no_time

T = TypeVar("T")


def _ignored(_length_s: float) -> None:
    """Do nothing with the time of a read."""


@dataclass(eq=False)
class MemoryFile:
    """An `AppendFile`; `synced` is what a power loss leaves for certain."""

    storage: "MemoryStorage"
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    cuts: int = 0
    """How often it was made shorter."""

    @property
    def size(self) -> int:
        """Bytes in the file, unsynced ones included."""
        return len(self.data)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at the end, or raise OSError with nothing written."""
        self.storage.take(len(data))
        self.data += data

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        self.storage.require_working(errno.EIO)
        return bytes(self.data[position : position + length])

    def truncate(self, size: int) -> None:
        """Drop everything from `size` on."""
        self.storage.take(min(size - len(self.data), 0))
        self.cuts += size < len(self.data)
        del self.data[size:]

    def sync(self) -> None:
        """Let everything written, and every name, survive a power loss."""
        self.storage.require_working(errno.EIO)
        self.synced = bytes(self.data)
        self.storage.commit()
        self.storage.take_time()

    async def sync_off_loop(self) -> None:
        """The same for what is there now, when a sync has taken its time."""
        wait_s = self.storage.sync_s()
        self.storage.require_working(errno.EIO)
        if wait_s:
            await self.storage.later(wait_s, partial(self._synced, bytes(self.data), self.cuts))
        else:
            self.synced = bytes(self.data)
            self.storage.commit()

    def _synced(self, data: bytes, cuts: int) -> None:
        self.storage.require_working(errno.EIO)
        if self.cuts == cuts:  # else it was cut off meanwhile, and what is there now is not synced
            self.synced = data
        self.storage.commit()

    def close(self) -> None:
        """Nothing to give back."""

    def lose_power(self, rng: random.Random | None) -> None:
        """Leave what was synced and, drawn from `rng`, a part of what was appended since, its last bytes garbled."""
        synced, tail = self.synced, b""
        if rng is not None and self.data.startswith(synced):
            tail = torn(bytes(self.data[len(synced) :]), rng)
        self.data[:] = synced + tail
        self.synced = bytes(self.data)  # what is there when the power is back was read from the disk itself


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """A file that is seen, and not yet in its place on the disk."""

    file: MemoryFile
    before: MemoryFile | None
    """What a power loss leaves until then."""


@dataclass(eq=False)
class MemoryStorage:
    """A `Storage` in memory."""

    files: dict[str, MemoryFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {""})
    space_left: int | None = None
    """Bytes that still fit on the disk; None for no limit."""
    failing: int | None = None
    """The number of the error that it answers with; None while it works."""
    sync_s: Wait = no_time
    """How long the next sync takes."""
    read_s: Wait = no_time
    """How long the next read takes that its reader waits for while it does other things."""
    block: Callable[[float], None] = _ignored
    """Hears for how long the process that runs now can do nothing else."""
    _pending: dict[str, _Pending] = field(default_factory=dict)
    _durable_files: dict[str, MemoryFile] = field(default_factory=dict)
    _durable_folders: set[str] = field(default_factory=lambda: {""})

    @property
    def size(self) -> int:
        """Bytes in all files, unsynced ones included."""
        return sum(file.size for file in self.files.values())

    def take(self, size: int) -> None:
        """Use up space; raises OSError when there is not enough. Less than none is given back."""
        self.require_working()
        if self.space_left is not None:
            if size > max(self.space_left, 0):
                raise OSError(errno.ENOSPC, "No space left on device")
            self.space_left -= size

    def require_working(self, error: int | None = None) -> None:
        """Raise OSError when the disk fails; with `error`, only when it fails so."""
        if self.failing is not None and error in (None, self.failing):
            raise OSError(self.failing, os.strerror(self.failing))

    def commit(self) -> None:
        """Let every name survive a power loss."""
        self._durable_files = dict(self.files)
        for path, pending in self._pending.items():
            _put_back(self._durable_files, path, pending)
        self._durable_folders = set(self.folders)

    def lose_power(self, rng: random.Random | None = None) -> None:
        """Leave the names of the last commit and of each file what was synced; with `rng`, perhaps more of its tail."""
        self._pending.clear()
        self.files = dict(self._durable_files)
        self.folders = set(self._durable_folders)
        for _, file in sorted(self.files.items()):
            file.lose_power(rng)

    def copy(self) -> "MemoryStorage":
        """Return a disk of its own with what a killed process leaves, which works and takes no time."""
        other = MemoryStorage(folders=set(self.folders), _durable_folders=set(self._durable_folders))
        files = dict(self.files)
        for path, pending in self._pending.items():
            _put_back(files, path, pending)
        kept = {*files.values(), *self._durable_files.values()}
        copies = {file: MemoryFile(other, bytearray(file.data), file.synced) for file in kept}
        other.files = {path: copies[file] for path, file in files.items()}
        other._durable_files = {path: copies[file] for path, file in self._durable_files.items()}
        return other

    def clear(self) -> None:
        """Give back the memory of all files."""
        for file in {*self.files.values(), *self._durable_files.values()}:
            file.data.clear()
            file.synced = b""

    def open_append(self, path: str) -> MemoryFile:
        """Open or create a file."""
        file = self.files.get(path)
        if file is None:
            self._need_folder(path)
            file = self.files[path] = MemoryFile(self)
        return file

    def read(self, path: str) -> bytes:
        """Return a whole file; raises FileNotFoundError."""
        if path not in self.files:
            raise FileNotFoundError(path)
        return bytes(self.files[path].data)

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in place of a file, atomically and durably."""
        self._need_folder(path)
        self._overtake(path)
        self.take(len(data))  # both are there for a moment
        if path in self.files:
            self.take(-self.files[path].size)
        self.files[path] = MemoryFile(self, bytearray(data), bytes(data))
        self.commit()
        self.take_time()

    async def replace_off_loop(self, path: str, data: bytes) -> bool:
        """The same when a sync has taken its time, unless something else is done to the file or its folder before."""
        wait_s = self.sync_s()
        self._need_folder(path)
        self._overtake(path)
        self.take(len(data))
        pending = _Pending(MemoryFile(self, bytearray(data)), self.files.get(path))
        self.files[path] = pending.file
        self._pending[path] = pending
        if not wait_s:
            return self._put(path, pending)
        return await self.later(wait_s, partial(self._put, path, pending))

    def _put(self, path: str, pending: _Pending) -> bool:
        """Put in place what is pending; return whether it was still wanted."""
        if self._pending.get(path) is not pending:
            return False
        self.require_working(errno.EIO)
        del self._pending[path]
        pending.file.synced = bytes(pending.file.data)
        if pending.before is not None:
            self.take(-pending.before.size)
        self.commit()
        return True

    def _overtake(self, path: str) -> None:
        """Let nothing be put in place any more at a path or below it."""
        for each in [each for each in self._pending if each == path or each.startswith(f"{path}/")]:
            pending = self._pending.pop(each)
            self.take(-pending.file.size)
            _put_back(self.files, each, pending)

    def abandon(self) -> None:
        """Put nothing in place any more: the process that was to is dead."""
        for path, pending in self._pending.items():
            _put_back(self.files, path, pending)
        self._pending.clear()

    async def ready(self) -> None:
        """Return when a read has taken its time."""
        await asyncio.sleep(self.read_s())

    async def later(self, wait_s: float, act: Callable[[], T]) -> T:
        """Return what something comes to that is done after a while, whether this is cancelled or not."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        done.add_done_callback(lambda each: each.cancelled() or each.exception())

        def end() -> None:
            try:
                done.set_result(act())
            except OSError as error:
                done.set_exception(error)

        loop.call_later(wait_s, end)
        return await asyncio.shield(done)

    def take_time(self) -> None:
        """Let the process that syncs wait for that and do nothing else."""
        if wait_s := self.sync_s():
            self.block(wait_s)

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return path in self.files or path in self.folders

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; an absent folder is empty."""
        prefix = path and f"{path}/"
        names = (p[len(prefix) :] for p in (*self.files, *self.folders) if p.startswith(prefix))
        return sorted(name for name in names if name and "/" not in name)

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents, durably; raises OSError where not even a name has room."""
        if path in self.folders:
            return
        self.take(1)
        while path:
            self.folders.add(path)
            path = posixpath.dirname(path)
        self.commit()

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder, durably."""
        self._overtake(old)

        def moved(path: str) -> str:
            return new + path[len(old) :] if path == old or path.startswith(old + "/") else path

        self.files = {moved(path): file for path, file in self.files.items()}
        self.folders = {moved(path) for path in self.folders}
        self.commit()

    def move(self, old: str, new: str) -> None:
        """Rename a file over another one; a power loss may undo it."""
        self._overtake(old)
        self._overtake(new)
        if new in self.files:
            self.take(-self.files[new].size)
        self.files[new] = self.files.pop(old)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; a power loss may bring it back."""

        def gone(p: str) -> bool:
            return p == path or p.startswith(path + "/")

        self._overtake(path)
        if path in self.files:
            self.take(-self.files.pop(path).size)
            return
        self.take(-sum(file.size for p, file in self.files.items() if gone(p)))
        self.files = {p: file for p, file in self.files.items() if not gone(p)}
        self.folders = {p for p in self.folders if not gone(p)}

    def _need_folder(self, path: str) -> None:
        if posixpath.dirname(path) not in self.folders:
            raise FileNotFoundError(errno.ENOENT, "No such folder", posixpath.dirname(path))


def _put_back(files: dict[str, MemoryFile], path: str, pending: _Pending) -> None:
    """Let a file be what it was before."""
    if pending.before is None:
        files.pop(path, None)
    else:
        files[path] = pending.before


def whole(disks: Mapping[str, MemoryStorage]) -> MemoryStorage:
    """Return the files of several disks, each in a folder of its name; a single disk is returned as it is."""
    if len(disks) == 1:
        return next(iter(disks.values()))
    files = {f"{name}/{path}": file for name, disk in disks.items() for path, file in disk.files.items()}
    folders = {f"{name}/{path}".rstrip("/") for name, disk in disks.items() for path in disk.folders}
    return MemoryStorage(files=files, folders={"", *folders})
