"""A `Storage` in memory that can run full and lose power."""

import posixpath
from dataclasses import dataclass, field


@dataclass
class MemoryFile:
    """An `AppendFile`; `synced` is what a power loss leaves."""

    storage: "MemoryStorage"
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    @property
    def size(self) -> int:
        return len(self.data)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        self.storage.take(len(data))
        self.data += data

    def read(self, position: int, length: int) -> bytes:
        return bytes(self.data[position : position + length])

    def truncate(self, size: int) -> None:
        del self.data[size:]

    def sync(self) -> None:
        self.synced = bytes(self.data)

    def close(self) -> None:
        pass


@dataclass
class MemoryStorage:
    files: dict[str, MemoryFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {""})
    space_left: int | None = None
    """Bytes that still fit on the disk; None for no limit."""

    def take(self, size: int) -> None:
        if self.space_left is not None:
            if size > self.space_left:
                raise OSError(28, "No space left on device")
            self.space_left -= size

    def lose_power(self) -> None:
        """Leave of each file only what was synced."""
        for file in self.files.values():
            file.data[:] = file.synced

    def open_append(self, path: str) -> MemoryFile:
        assert posixpath.dirname(path) in self.folders, f"no folder for {path}"
        return self.files.setdefault(path, MemoryFile(self))

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return bytes(self.files[path].data)

    def replace(self, path: str, data: bytes) -> None:
        assert posixpath.dirname(path) in self.folders, f"no folder for {path}"
        self.files[path] = MemoryFile(self, bytearray(data), bytes(data))

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.folders

    def list(self, path: str) -> list[str]:
        inside = [p for p in [*self.files, *self.folders] if p and posixpath.dirname(p) == path]
        return sorted(posixpath.basename(p) for p in inside)

    def make_folder(self, path: str) -> None:
        while path:
            self.folders.add(path)
            path = posixpath.dirname(path)

    def rename(self, old: str, new: str) -> None:
        def moved(path: str) -> str:
            return new + path[len(old) :] if path == old or path.startswith(old + "/") else path

        self.files = {moved(path): file for path, file in self.files.items()}
        self.folders = {moved(path) for path in self.folders}

    def remove(self, path: str) -> None:
        def gone(p: str) -> bool:
            return p == path or p.startswith(path + "/")

        self.files = {p: file for p, file in self.files.items() if not gone(p)}
        self.folders = {p for p in self.folders if not gone(p)}
