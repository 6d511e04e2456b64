"""How is a file or folder on a file system of Hadoop used as a `Path` is, so that results can go anywhere?"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.storage import java_path, literal_glob, reason
from harness.errors import EvidenceError
from harness.store.folder import ResultFolder, RunFolder


@dataclass(frozen=True, slots=True)
class HadoopPath:
    """A file or folder behind a URI, used as a `Path` is; its methods raise EvidenceError with Hadoop's reason."""

    uri: str
    spark: SparkSession = field(repr=False, compare=False)

    def __str__(self) -> str:
        """Return the URI, as Spark takes it."""
        return self.uri

    def __truediv__(self, name: str) -> "HadoopPath":
        """Return what has this name in this folder."""
        return HadoopPath(f"{self.uri.rstrip('/')}/{name}", self.spark)

    @property
    def name(self) -> str:
        """The last part of the URI."""
        return self.uri.rstrip("/").rpartition("/")[2]

    def exists(self) -> bool:
        """Return whether there is such a file or folder."""
        with self._hadoop() as (system, path):
            return bool(system.exists(path))

    def glob(self, pattern: str) -> "list[HadoopPath]":
        """Return what in this folder has a name like this."""
        with self._hadoop() as (system, _):
            pattern_path = java_path(self.spark, f"{literal_glob(self.uri.rstrip('/'))}/{pattern}")
            names = [status.getPath().getName() for status in system.globStatus(pattern_path) or []]
        return [self / name for name in names]

    def remove(self) -> None:
        """Remove it with all that is in it, if it is there."""
        with self._hadoop() as (system, path):
            system.delete(path, True)

    def write_text(self, text: str, encoding: str) -> None:
        """Write a file, or replace it."""
        with self._hadoop() as (system, path):
            stream = system.create(path, True)
            try:
                stream.write(bytearray(text, encoding))
            finally:
                stream.close()

    def copy_from(self, file: Path) -> None:
        """Copy a file of this machine here, or replace what is here by it."""
        with self._hadoop() as (system, path):
            system.copyFromLocalFile(False, True, java_path(self.spark, file.absolute().as_uri()), path)

    @contextmanager
    def _hadoop(self) -> Iterator[tuple[JavaObject, JavaObject]]:
        """Yield the file system, and this path as it knows it."""
        try:
            path = java_path(self.spark, self.uri)
            yield path.getFileSystem(self.spark._jsc.hadoopConfiguration()), path
        except Py4JError as error:
            raise_if_engine_lost(error)
            raise EvidenceError(f"{self.uri}: {reason(error)}") from error


Folder = Path | HadoopPath
AnyResultFolder = RunFolder | ResultFolder[HadoopPath]
"""Where facts and findings go."""


def remove(folder: Folder) -> None:
    """Remove a folder if it is there; of this machine without a JVM, which may have ended."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.remove()
