"""The files of evidence behind a path, a folder, a glob or a URI."""

import json
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import Protocol

from harness.analysis.engine.storage import display_path
from harness.errors import EvidenceError
from harness.system.chain import has_link

JSON, PARQUET = "json", "parquet"
_SUFFIXES = {".jsonl": JSON, ".ndjson": JSON, ".json": JSON, ".parquet": PARQUET}
BYTE_ORDER_MARK = "\ufeff".encode()
"""Byte order mark that some tools write first in a file, and Hadoop skips."""
LONGEST_LINE = 1_000_000
"""Bytes at a file's end that are searched for its last line, and the longest of its first lines."""
FIRST_LINES = 2**20
"""Bytes of the first lines that are searched for a chained one: the very first may be damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of evidence."""

    path: str
    """With its scheme, as Spark names it."""
    size: int
    format: str
    """`JSON` or `PARQUET`."""
    torn: bool
    """Whether it is text that ends in half a line."""
    chained: bool
    """Whether it is text whose lines are numbered and chained (`harness/system/chain.py`)."""

    @property
    def shown(self) -> str:
        """The path as a person writes it."""
        return display_path(self.path)


class Files(Protocol):
    """A file system with evidence; every method raises EvidenceError if a file cannot be read."""

    compressions: tuple[str, ...]
    """Suffixes of compressed text that is unpacked while it is read."""

    def matches(self, text: str) -> list[tuple[str, int]]:
        """Return path, with its scheme, and size of every file that a text stands for.

        Below a folder, empty files do not count, nor names that begin with `_` or `.`, as in Spark.
        """

    def end(self, path: str, offset: int) -> bytes:
        """Return the bytes of a file from an offset on."""

    def text(self, path: str) -> AbstractContextManager[BufferedReader]:
        """Open a text file, unpacked if its suffix says so."""

    def unpacked(self, path: str, limit: int) -> int:
        """Return the uncompressed size of compressed text; at most `limit` bytes are read."""


def counts(parts: tuple[str, ...]) -> bool:
    """Return whether a file counts, by the parts of its path below the named folder."""
    return not any(part.startswith(("_", ".")) for part in parts)


def stored_files(files: Files, text: str) -> list[StoredFile]:
    """Return the files that a path, a folder or a glob stands for, in the order of their paths.

    Raises:
        EvidenceError: there is none, it cannot be read or named, or it is neither JSON Lines nor Parquet.
    """
    _check_name(text)
    paths = files.matches(text)
    if not paths:
        raise EvidenceError(f"{text}: there is no file")
    for path, _ in paths:
        _check_name(path)
    return [_stored(files, path, size) for path, size in sorted(paths)]


def is_compressed(files: Files, path: str) -> bool:
    """Return whether a file is unpacked while it is read, by its name."""
    return path.endswith(files.compressions)


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise EvidenceError(f"{display_path(path)!a}: its name is not UTF-8, and no engine finds it") from error


def _stored(files: Files, path: str, size: int) -> StoredFile:
    if not size:
        raise EvidenceError(f"{display_path(path)} is empty")
    compressed = is_compressed(files, path)
    stem = path.rpartition(".")[0] if compressed else path
    format_ = next((format_ for suffix, format_ in _SUFFIXES.items() if stem.endswith(suffix)), None)
    if format_ is None or (compressed and format_ == PARQUET):
        raise EvidenceError(f"{display_path(path)}: its name must end in one of {', '.join(_SUFFIXES)}")
    torn = format_ == JSON and not compressed and _is_torn(files, path, size)
    chained = format_ == JSON and _is_chained(files, path)
    return StoredFile(path=path, size=size, format=format_, torn=torn, chained=chained)


def _is_chained(files: Files, path: str) -> bool:
    """Return whether a line among the first is chained; an unreadable file is left to the reader of the whole file."""
    with suppress(EvidenceError), files.text(path) as stream:
        return has_link(stream.read(FIRST_LINES) + stream.readline(LONGEST_LINE))
    return False


def _is_torn(files: Files, path: str, size: int) -> bool:
    """Return whether the last line has no newline and is not JSON: many tools write no newline after the last line."""
    if files.end(path, size - 1) == b"\n":
        return False
    end = files.end(path, max(0, size - LONGEST_LINE))
    if size <= LONGEST_LINE:
        end = end.removeprefix(BYTE_ORDER_MARK)
    try:
        json.loads(end.rpartition(b"\n")[2].decode(errors="replace"))
    except ValueError:
        return True
    except RecursionError:
        return False  # complete or not, it is unreadable
    return False
