"""The real disk: `Storage` on a folder of the file system."""

import os
import shutil
from pathlib import Path

_TEMPORARY = ".tmp"


class _File:
    """An `AppendFile` on a file descriptor."""

    __slots__ = ("_descriptor", "_folder_synced", "_path", "_size")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder_synced = path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._descriptor).st_size

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

    def sync(self) -> None:
        os.fsync(self._descriptor)
        if not self._folder_synced:
            _sync_folder(self._path.parent)
            self._folder_synced = True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class FileStorage:
    """A `Storage` whose paths are relative to `root`, which is created."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._root.mkdir(parents=True, exist_ok=True)

    def open_append(self, path: str) -> _File:
        """Open or create a file."""
        return _File(self._root / path)

    def read(self, path: str) -> bytes:
        """Return a whole file; raises FileNotFoundError."""
        return (self._root / path).read_bytes()

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in place of a file, atomically and durably."""
        target = self._root / path
        temporary = target.with_name(target.name + _TEMPORARY)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return (self._root / path).exists()

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; an absent folder is empty."""
        folder = self._root / path
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents; one that exists is fine."""
        folder = self._root / path
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _sync_folder(folder.parent)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder."""
        target = self._root / new
        (self._root / old).rename(target)
        _sync_folder(target.parent)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; an absent one is fine."""
        target = self._root / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
