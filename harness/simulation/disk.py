"""A disk in memory: what a power loss leaves of it, a torn tail, a full disk.

Names and contents are durable apart, as on a journalling file system (ext4, ordered): a file's bytes survive once that
file is synced; names (files made, replaced, renamed, removed) survive once *any* later sync has gone through, because
the journal is written in order. The process's own death takes nothing: what was written is with the kernel.
"""

import errno
import os
import posixpath
import random
from dataclasses import dataclass, field

from harness.cluster.disks.damage import torn


@dataclass(eq=False)
class MemoryFile:
    """An `AppendFile`; `synced` is what a power loss leaves for certain."""

    storage: "MemoryStorage"
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

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
        del self.data[size:]

    def sync(self) -> None:
        """Let everything written, and every name, survive a power loss."""
        self.storage.require_working(errno.EIO)
        self.synced = bytes(self.data)
        self.storage.commit()

    async def sync_off_loop(self) -> None:
        """The same, at once: this disk keeps nobody waiting."""
        self.sync()

    def close(self) -> None:
        """Nothing to give back."""

    def lose_power(self, rng: random.Random | None) -> None:
        """Leave what was synced and, drawn from `rng`, a part of what was appended since, its last bytes garbled."""
        synced, tail = self.synced, b""
        if rng is not None and self.data.startswith(synced):
            tail = torn(bytes(self.data[len(synced) :]), rng)
        self.data[:] = synced + tail
        self.synced = bytes(self.data)  # what is there when the power is back was read from the disk itself


@dataclass(eq=False)
class MemoryStorage:
    """A `Storage` in memory."""

    files: dict[str, MemoryFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {""})
    space_left: int | None = None
    """Bytes that still fit on the disk; None for no limit."""
    failing: int | None = None
    """The number of the error that it answers with; None while it works."""
    _durable_files: dict[str, MemoryFile] = field(default_factory=dict)
    _durable_folders: set[str] = field(default_factory=lambda: {""})

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
        self._durable_folders = set(self.folders)

    def lose_power(self, rng: random.Random | None = None) -> None:
        """Leave the names of the last commit and of each file what was synced; with `rng`, perhaps more of its tail."""
        self.files = dict(self._durable_files)
        self.folders = set(self._durable_folders)
        for _, file in sorted(self.files.items()):
            file.lose_power(rng)

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
        self.take(len(data))  # both are there for a moment
        if path in self.files:
            self.take(-self.files[path].size)
        self.files[path] = MemoryFile(self, bytearray(data), bytes(data))
        self.commit()

    async def replace_off_loop(self, path: str, data: bytes) -> bool:
        """The same, at once; nobody can overtake it."""
        self.replace(path, data)
        return True

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return path in self.files or path in self.folders

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; an absent folder is empty."""
        inside = [p for p in [*self.files, *self.folders] if p and posixpath.dirname(p) == path]
        return sorted(posixpath.basename(p) for p in inside)

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

        def moved(path: str) -> str:
            return new + path[len(old) :] if path == old or path.startswith(old + "/") else path

        self.files = {moved(path): file for path, file in self.files.items()}
        self.folders = {moved(path) for path in self.folders}
        self.commit()

    def move(self, old: str, new: str) -> None:
        """Rename a file over another one; a power loss may undo it."""
        if new in self.files:
            self.take(-self.files[new].size)
        self.files[new] = self.files.pop(old)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; a power loss may bring it back."""

        def gone(p: str) -> bool:
            return p == path or p.startswith(path + "/")

        self.take(-sum(file.size for p, file in self.files.items() if gone(p)))
        self.files = {p: file for p, file in self.files.items() if not gone(p)}
        self.folders = {p for p in self.folders if not gone(p)}

    def _need_folder(self, path: str) -> None:
        if posixpath.dirname(path) not in self.folders:
            raise FileNotFoundError(errno.ENOENT, "No such folder", posixpath.dirname(path))
