"""The data directory for the broker: a storage that reports the failure of its disk (KIP-112).

Every error of the disk passes through here, from any caller, and is raised again unchanged. So one listener, called
once, is enough to take the replicas in the directory offline, and no code that touches a file can forget to.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.broker.log.storage import AppendFile, Storage, StorageError

_log = logging.getLogger(__name__)


class DirectoryOffline(StorageError):
    """The data directory has failed before; nothing in it is touched until the broker starts again."""


@dataclass(slots=True, eq=False)
class _WatchedFile:
    """An `AppendFile` of a data directory; the hot path, hence without the context manager."""

    directory: "LogDirectory"
    file: AppendFile

    @property
    def size(self) -> int:
        return self.file.size

    def append(self, data: bytes | bytearray | memoryview) -> None:
        try:
            self.file.append(data)
        except OSError as error:
            self.directory.note(error)
            raise

    def read(self, position: int, length: int) -> bytes:
        try:
            return self.file.read(position, length)
        except OSError as error:
            self.directory.note(error)
            raise

    def truncate(self, size: int) -> None:
        with self.directory.noting():
            self.file.truncate(size)

    def sync(self) -> None:
        with self.directory.noting():
            self.file.sync()

    async def sync_off_loop(self) -> None:
        with self.directory.noting():
            await self.file.sync_off_loop()

    def close(self) -> None:
        self.file.close()


class LogDirectory:
    """A `Storage` that knows whether it has failed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._listener: Callable[[OSError], None] | None = None
        self.failed = False

    def on_failure(self, listener: Callable[[OSError], None]) -> None:
        """Call `listener` with the first error from now on; without a listener, errors are only raised."""
        self._listener = listener

    def note(self, error: OSError) -> None:
        """Record an error of the disk."""
        if self._listener is not None and not self.failed:
            self.failed = True
            _log.error("log_directory.failed error=%s", error)
            self._listener(error)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Record the errors of a block, and raise them again."""
        try:
            yield
        except OSError as error:
            self.note(error)
            raise

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Refuse calls after a failure, and record a new one.

        Raises:
            DirectoryOffline: the directory has failed before.
        """
        if self.failed:
            raise DirectoryOffline("the data directory has failed")
        with self.noting():
            yield

    def open_append(self, path: str) -> AppendFile:
        """Open or create a file."""
        with self._working():
            return _WatchedFile(self, self._storage.open_append(path))

    def read(self, path: str) -> bytes:
        """Return a whole file; raises FileNotFoundError, which is no failure of the disk."""
        if not self.exists(path):
            raise FileNotFoundError(path)
        with self._working():
            return self._storage.read(path)

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in place of a file, atomically and durably."""
        with self._working():
            self._storage.replace(path, data)

    async def replace_off_loop(self, path: str, data: bytes) -> bool:
        """Like `replace`, without blocking the loop; return whether `data` was put in place, or overtaken."""
        with self._working():
            return await self._storage.replace_off_loop(path, data)

    async def ready(self) -> None:
        """Return when a long read can begin, without blocking the loop."""
        with self._working():
            await self._storage.ready()

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        with self._working():
            return self._storage.exists(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; an absent folder is empty."""
        with self._working():
            return self._storage.list(path)

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents; one that exists is fine."""
        with self._working():
            self._storage.make_folder(path)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder."""
        with self._working():
            self._storage.rename(old, new)

    def move(self, old: str, new: str) -> None:
        """Rename a file over another one; the names survive a power loss once anything is synced later."""
        with self._working():
            self._storage.move(old, new)

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; an absent one is fine."""
        with self._working():
            self._storage.remove(path)
