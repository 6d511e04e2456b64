"""Files of evidence on this machine, or behind any URI that Hadoop knows, as a JVM of this process sees them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from harness.analysis.engine.jvm import still_there
from harness.analysis.engine.storage import display_path, is_uri, java_path, reason
from harness.errors import EvidenceError
from harness.ingest.files import counts

_GLOB = re.compile(r"[*?\[{]")


class HadoopFiles:
    """Those that Hadoop finds."""

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

    def unpacked(self, path: str, limit: int) -> int:
        """Return how many bytes compressed text has."""
        with _readable(path), self._opened(path) as stream:
            hadoop = self._jvm.org.apache.hadoop
            codecs = hadoop.io.compress.CompressionCodecFactory(self._spark._jsc.hadoopConfiguration())
            codec = codecs.getCodec(java_path(self._spark, path))
            return int(self._io.skip(codec.createInputStream(stream), limit))

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


def _named(status: JavaObject) -> tuple[str, int]:
    return str(status.getPath().toString()), int(status.getLen())


@contextmanager
def _readable(text: str) -> Iterator[None]:
    try:
        yield
    except Py4JError as error:
        still_there(error)
        raise EvidenceError(f"{display_path(text)}: cannot be read: {reason(error)}") from error
