"""The only interface of the broker to a disk; the simulation has another one that can lose unsynced data."""

from typing import Protocol


class StorageError(OSError):
    """Data on disk is unusable; the message says what was expected, what was seen, and where."""


class AppendFile(Protocol):
    """An open file that grows at its end."""

    @property
    def size(self) -> int:
        """Bytes in the file, unsynced ones included."""
        ...

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at the end; raises OSError (disk full) with the file at its earlier size."""
        ...

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        ...

    def truncate(self, size: int) -> None:
        """Drop everything from `size` on."""
        ...

    def sync(self) -> None:
        """Return when everything written survives a power loss."""
        ...

    async def sync_off_loop(self) -> None:
        """Return when everything written until now survives a power loss, without blocking the loop."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Storage(Protocol):
    """A folder tree; paths are relative to it, with `/`."""

    def open_append(self, path: str) -> AppendFile:
        """Open or create a file."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole file; raises FileNotFoundError."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in place of a file, atomically and durably (temporary file, sync, rename)."""
        ...

    async def replace_off_loop(self, path: str, data: bytes) -> bool:
        """Like `replace`, without blocking the loop; return whether `data` was put in place.

        Reads of the file, and checks for it, see `data` from the call on. Whatever else is done to the file
        or its folder meanwhile (replaced, removed, renamed) comes after it: then `data` is not put in place any more.
        Cancelling the caller does not undo it.
        """
        ...

    async def ready(self) -> None:
        """Return when a long read can begin, without blocking the loop."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        ...

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; an absent folder is empty."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents; one that exists is fine."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder."""
        ...

    def move(self, old: str, new: str) -> None:
        """Rename a file over another one; the names survive a power loss once anything is synced later."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; an absent one is fine."""
        ...
