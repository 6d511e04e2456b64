"""Unpacks a tar stream from a container into files; its content is untrusted, so few features of tar are accepted.

Regular files and folders, below one new folder, within bounds. No links, no devices, no sparse files: `tarfile` unpacks
these, and its filter `data` has let archives out of their folder (CVE-2025-4517). Only its decoder of headers is used.
"""

import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ClusterError

TAKEN = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE})
NOT_TAKEN = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}
LONG_NAMES = frozenset({tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME})
"""Entries that precede the one they describe, with a name or size too long for its header."""
LONG_NAME_BYTES = 1 << 20
SPARSE = "GNU.sparse."
LONGEST_NUMBER = 18
"""Digits."""
SHOWN = 200
"""Characters of a name in a message."""
NOTHING_FOLLOWS = bytes(tarfile.BLOCKSIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What an archive may hold at most."""

    entries: int = 1_000_000
    """Files, folders, and the entries with their long names."""
    size_bytes: int = 64 << 30
    """Sum of all files."""

    def check(self, entries: int, size_bytes: int) -> None:
        """Raise ClusterError if a limit is exceeded."""
        if entries > self.entries:
            raise ClusterError(f"its archive has more than {self.entries} entries")
        if size_bytes > self.size_bytes:
            raise ClusterError(f"its archive holds more than {self.size_bytes} bytes")


def unpack(chunks: Iterable[bytes], folder: Path, bounds: Bounds) -> None:
    """Unpack a tar stream into a new folder.

    Raises:
        ClusterError: it is cut off, or has an entry of a refused kind; earlier entries stay in the folder.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True)
    root, stream = folder.resolve(), _Stream(chunks)
    for member in _members(stream, bounds):
        path = _below(root, member.name)
        if member.size is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            for piece in stream.content(member.size):
                file.write(piece)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    name: str
    size: int | None
    """Of a file; None for a folder."""


def _members(stream: "_Stream", bounds: Bounds) -> Iterator[_Member]:
    """Yield every file and folder; read the content of a file before asking for the next one."""
    entries = size_bytes = 0
    attributes: dict[str, str] = {}
    """Attributes of the next member, from the entries before it."""
    while (block := stream.read(tarfile.BLOCKSIZE)) != NOTHING_FOLLOWS:
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError as error:
            raise ClusterError(f"its archive cannot be read: {error}") from error
        entries += 1
        if header.type in LONG_NAMES and 0 <= header.size <= LONG_NAME_BYTES:
            bounds.check(entries, size_bytes)
            attributes |= _attributes(header.type, b"".join(stream.content(header.size)))
            continue
        name, size = attributes.get("path", header.name), _number(attributes.get("size", str(header.size)))
        type_ = tarfile.GNUTYPE_SPARSE if SPARSE in attributes else header.type
        if type_ not in TAKEN:
            raise ClusterError(f"its archive holds {NOT_TAKEN.get(type_, 'what is no file')}: {name[:SHOWN]!r}")
        is_file = type_ != tarfile.DIRTYPE
        size_bytes += size if is_file else 0
        bounds.check(entries, size_bytes)
        yield _Member(name=name, size=size if is_file else None)
        attributes = {}


def _attributes(type_: bytes, data: bytes) -> dict[str, str]:
    """Return what an entry says about the next one; a PAX header is lines `LENGTH KEY=VALUE`."""
    if type_ == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.partition(b"\0")[0].decode("utf-8", "surrogateescape")}
    attributes = {}
    while data:
        length = _number(data.partition(b" ")[0].decode("ascii", "replace"))
        line, data = data[:length], data[length:]
        key, equals, value = line.partition(b" ")[2].decode("utf-8", "surrogateescape").partition("=")
        if not equals or not value.endswith("\n"):
            raise ClusterError("its archive cannot be read: a broken PAX header")
        if key in ("path", "size"):
            attributes[key] = value[:-1]
        elif key.startswith(SPARSE):
            attributes[SPARSE] = value[:-1]
    return attributes


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > LONGEST_NUMBER:
        raise ClusterError(f"its archive cannot be read: {text[:LONGEST_NUMBER]!r} is no size")
    return int(text)


def _below(root: Path, name: str) -> Path:
    """Return the path of a member; nothing below `root` is a link, so a path without `..` stays there."""
    path = root / name
    if "\0" in name or ".." in path.parts or not path.resolve().is_relative_to(root):
        raise ClusterError(f"its archive holds a path outside its folder: {name[:SHOWN]!r}")
    return path


class _Stream:
    """The bytes of an archive, in order and once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        return b"".join(self._pieces(size))

    def content(self, size: int) -> Iterator[bytes | memoryview]:
        """Yield this many bytes, and read the padding of their last block."""
        yield from self._pieces(size)
        self.read(-size % tarfile.BLOCKSIZE)

    def _pieces(self, size: int) -> Iterator[bytes | memoryview]:
        while size:
            if not self._rest:
                try:
                    self._rest = memoryview(next(self._chunks))
                except StopIteration:
                    raise ClusterError("its archive ends too early") from None
                continue
            piece, self._rest = self._rest[:size], self._rest[size:]
            size -= len(piece)
            yield piece
