"""Files of evidence on this machine, or behind any URI that Hadoop knows, through a JVM of this process."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.storage import display_path, is_uri, java_path, reason
from harness.errors import EvidenceError
from harness.ingest.files import FIRST_LINES, counts, is_compressed
from harness.ingest.local_files import SCHEME, LocalFiles

_GLOB = re.compile(r"[*?\[{]")
_HERE = LocalFiles()


class HadoopFiles:
    """Finds files by Hadoop."""

    compressions: tuple[str, ...] = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def matches(self, text: str) -> list[tuple[str, int]]:
        """Return path and size of every file that a path, a folder, a glob or a URI stands for."""
        with _readable(text):
            return list(self._matches(text))

    def end(self, path: str, offset: int) -> bytes:
        """Return the bytes of a file from an offset on."""
        with _readable(path), self._opened(path) as stream:
            stream.seek(offset)
            return bytes(self._io.toByteArray(stream))

    @contextmanager
    def text(self, path: str) -> Iterator[BufferedReader]:
        """Open a text file, unpacked if its suffix says so; Python reads what it can without the JVM."""
        compressed = is_compressed(self, path)
        if path.startswith(SCHEME) and (not compressed or is_compressed(_HERE, path)):
            with _HERE.text(path) as here:
                yield here
            return
        with _readable(path), self._opened(path) as stream:
            raw = self._unpacking(path, stream) if compressed else stream
            yield BufferedReader(_Stream(self._jvm.java.io.DataInputStream(raw)), FIRST_LINES)

    def unpacked(self, path: str, limit: int) -> int:
        """Return the uncompressed size of compressed text."""
        with _readable(path), self._opened(path) as stream:
            return int(self._io.skip(self._unpacking(path, stream), limit))

    def _unpacking(self, path: str, stream: JavaObject) -> JavaObject:
        compress = self._jvm.org.apache.hadoop.io.compress
        codecs = compress.CompressionCodecFactory(self._spark._jsc.hadoopConfiguration())
        return codecs.getCodec(java_path(self._spark, path)).createInputStream(stream)

    def _matches(self, text: str) -> Iterator[tuple[str, int]]:
        path = java_path(self._spark, text if is_uri(text) else str(Path(text).absolute()))
        system = self._system(path)
        if system.exists(path):
            matches = [system.getFileStatus(path)]
        else:
            matches = list(system.globStatus(path) or []) if _GLOB.search(text) else []
        for match in matches:
            if not match.isDirectory():
                yield _named(match)
                continue
            root = match.getPath().toString()
            statuses = system.listFiles(match.getPath(), True)
            while statuses.hasNext():
                file, size = _named(statuses.next())
                if size and counts(tuple(file[len(root) + 1 :].split("/"))):
                    yield file, size

    def _system(self, path: JavaObject) -> JavaObject:
        return path.getFileSystem(self._spark._jsc.hadoopConfiguration())

    @contextmanager
    def _opened(self, text: str) -> Iterator[JavaObject]:
        path = java_path(self._spark, text)
        stream = self._system(path).open(path)
        try:
            yield stream
        finally:
            stream.close()

    @property
    def _jvm(self) -> Any:
        assert self._spark._jvm is not None
        return self._spark._jvm

    @property
    def _io(self) -> Any:
        return self._jvm.org.apache.commons.io.IOUtils


class _Stream(RawIOBase):
    """A stream of Java as a raw stream of Python."""

    def __init__(self, stream: JavaObject) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the available bytes."""
        part = bytes(self._stream.readNBytes(len(buffer)))
        buffer[: len(part)] = part
        return len(part)


def _named(status: JavaObject) -> tuple[str, int]:
    return str(status.getPath().toString()), int(status.getLen())


@contextmanager
def _readable(text: str) -> Iterator[None]:
    try:
        yield
    except Py4JError as error:
        raise_if_engine_lost(error)
        raise EvidenceError(f"{display_path(text)}: cannot be read: {reason(error)}") from error
