"""Files of evidence on this machine, for engines that have no JVM here."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from harness.analysis.storage import display_path, is_uri
from harness.errors import EvidenceError
from harness.ingest.files import counts

SCHEME = "file:"
AT_ONCE = 2**20
"""Bytes that are unpacked at once where they are but counted."""


class LocalFiles:
    """Those that Python finds."""

    compressions: tuple[str, ...] = (".gz", ".bz2", ".zst")

    def found(self, text: str) -> list[tuple[str, int]]:
        """Return path and size of every file that a path, a folder or a glob of `*`, `?` and `[…]` stands for."""
        path = local_path(text)
        with _readable(text):
            matches = [path] if path.exists() else Path(path.anchor).glob(str(path.relative_to(path.anchor)))
            return [(f"{SCHEME}{file}", file.stat().st_size) for match in matches for file in _files(match)]

    def end(self, path: str, offset: int) -> bytes:
        """Return the bytes of a file from an offset on."""
        with _readable(path), local_path(path).open("rb") as file:
            file.seek(offset)
            return file.read()

    def unpacked(self, path: str, limit: int) -> int:
        """Return how many bytes compressed text has."""
        with _readable(path), opened(path) as stream:
            size = 0
            while size < limit and (part := stream.read(AT_ONCE)):
                size += len(part)
        return size


def opened(path: str) -> pa.NativeFile:
    """Open a file, which is unpacked if its name says so."""
    return pa.input_stream(str(local_path(path)), compression="detect")


def local_path(text: str) -> Path:
    """Return the path of this machine that a text names.

    Raises:
        EvidenceError: it names another file system.
    """
    if is_uri(text) and not text.startswith(f"{SCHEME}//"):
        raise EvidenceError(f"{text}: only Apache Spark in a JVM of this machine reads from there: use --engine spark")
    return Path(display_path(text)).absolute()


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for file in path.rglob("*"):
        if file.is_file() and file.stat().st_size and counts(file.relative_to(path).parts):
            yield file


@contextmanager
def _readable(text: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise EvidenceError(f"{display_path(text)}: cannot be read: {error}") from error
