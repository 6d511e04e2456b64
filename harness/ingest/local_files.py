"""Files of evidence on this machine, for engines without a JVM."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path

import pyarrow as pa

from harness.analysis.engine.storage import display_path, is_uri
from harness.errors import EvidenceError
from harness.ingest.files import FIRST_LINES, counts

SCHEME = "file:"
_SIGNS = {*"*?["}
AT_ONCE = 2**20
"""Chunk size for counting unpacked bytes."""


class LocalFiles:
    """Finds files by Python."""

    compressions: tuple[str, ...] = (".gz", ".bz2", ".zst")

    def matches(self, text: str) -> list[tuple[str, int]]:
        """Return path and size of every file that a path, a folder or a glob of `*`, `?` and `[…]` stands for."""
        path = local_path(text)
        with _readable(text):
            matches = [path] if path.exists() else _matches(Path(path.anchor), path.parts[1:])
            return [(f"{SCHEME}{file}", file.stat().st_size) for match in matches for file in _files(match)]

    def end(self, path: str, offset: int) -> bytes:
        """Return the bytes of a file from an offset on."""
        with _readable(path), local_path(path).open("rb") as file:
            file.seek(offset)
            return file.read()

    @contextmanager
    def text(self, path: str) -> Iterator[BufferedReader]:
        """Open a text file, unpacked if its suffix says so."""
        with _readable(path), opened(path) as stream:
            yield BufferedReader(stream, FIRST_LINES)

    def unpacked(self, path: str, limit: int) -> int:
        """Return the uncompressed size of compressed text."""
        with _readable(path), opened(path) as stream:
            size = 0
            while size < limit and (part := stream.read(AT_ONCE)):
                size += len(part)
        return size


def local_bytes(texts: Iterable[str]) -> int:
    """Return the size of local files; an unreadable one counts 0: its reader says what is wrong."""
    size_bytes = 0
    for text in texts:
        with suppress(EvidenceError):
            size_bytes += sum(size for _, size in LocalFiles().matches(text))
    return size_bytes


def opened(path: str) -> pa.NativeFile:
    """Open a file, unpacked if its suffix says so."""
    return pa.input_stream(str(local_path(path)), compression="detect")


def local_path(text: str) -> Path:
    """Return the local path that a text names.

    Raises:
        EvidenceError: it names another file system.
    """
    if is_uri(text) and not text.startswith(f"{SCHEME}//"):
        raise EvidenceError(f"{text}: only Apache Spark in a JVM of this machine reads from there: use --engine spark")
    return Path(os.path.abspath(display_path(text)))  # noqa: PTH100 - which goes up by `..`, as Hadoop does


def _matches(place: Path, steps: Sequence[str]) -> Iterator[Path]:
    """Yield the matches of a Hadoop glob (its `**` is `*`, and `[^` is `[!`) below a place.

    Raises:
        OSError: a folder on the way cannot be read, which Python's own globs ignore.
    """
    if not steps:
        if place.exists():
            yield place
    elif not _SIGNS & {*steps[0]}:
        yield from _matches(place / steps[0], steps[1:])
    elif place.is_dir():
        for path in place.iterdir():
            if fnmatchcase(path.name, steps[0].replace("[^", "[!")):
                yield from _matches(path, steps[1:])


def _files(path: Path) -> Iterator[Path]:
    return _below(path, frozenset()) if path.is_dir() else iter([path])


def _below(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Yield the files below a folder, also behind links, unless a link leads back to a folder above it."""
    here = folder.resolve()
    for path in folder.iterdir() if here not in above else ():
        if not counts((path.name,)):
            continue
        if path.is_dir():
            yield from _below(path, above | {here})
        elif path.is_file() and path.stat().st_size:
            yield path


@contextmanager
def _readable(text: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise EvidenceError(f"{display_path(text)}: cannot be read: {error}") from error
