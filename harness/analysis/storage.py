"""Which files does a path, a folder, a glob or a URI stand for, on this machine or on any file system Hadoop knows?"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from harness.analysis.jvm import MORE_MEMORY, OUT_OF_MEMORY, still_there
from harness.errors import EvidenceError

JSON, PARQUET = "json", "parquet"
_SUFFIXES = {".jsonl": JSON, ".ndjson": JSON, ".json": JSON, ".parquet": PARQUET}
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")
_GLOB = re.compile(r"[*?\[{]")
LONGEST_REASON = 300
LONGEST_LINE = 1_000_000
"""Bytes at a file's end in which its last line is looked for."""


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


def find_files(spark: SparkSession, text: str) -> list[StoredFile]:
    """Return the files that a path, a folder or a glob stands for, in the order of their paths.

    Below a folder, what is empty does not count, nor what has a name that begins with `_` or `.`, as Spark leaves it.

    Raises:
        EvidenceError: there is nothing, it cannot be read, or it is neither JSON Lines nor Parquet.
    """
    try:
        files = [_stored(spark, status) for status in _statuses(spark, text)]
    except Py4JError as error:
        still_there(error)
        raise EvidenceError(f"{text}: cannot be read: {reason(error)}") from error
    if not files:
        raise EvidenceError(f"{text}: there is no file")
    return sorted(files, key=lambda file: file.path)


def is_uri(text: str) -> bool:
    """Return whether a text names its file system, and is no path of this machine."""
    return "://" in text


def java_path(spark: SparkSession, text: str) -> JavaObject:
    """Return a path as an object of Hadoop."""
    assert spark._jvm is not None
    return spark._jvm.org.apache.hadoop.fs.Path(text)


def reason(error: Exception) -> str:
    """Return the message of an error, Java's own where it has one, in one line."""
    message = "\n".join(_causes(error.java_exception)) if isinstance(error, Py4JJavaError) else str(error)
    if OUT_OF_MEMORY in message:
        return f"Spark's memory does not hold it; {MORE_MEMORY}"
    match = re.search(r"\[[A-Z_.]+\] .*", message)  # Spark's own errors, which a failed job has within its own
    return next(iter((match[0] if match else message).splitlines()), type(error).__name__)[:LONGEST_REASON]


def _causes(exception: JavaObject | None) -> Iterator[str]:
    """Yield what an exception of Java says, and what those say that caused it."""
    while exception is not None:
        yield str(exception.toString())
        exception = exception.getCause()


def display_path(path: str) -> str:
    """Return a path as a person writes it: without the scheme of local files."""
    return re.sub(r"^file:/+", "/", path)


def literal_glob(path: str) -> str:
    """Return the glob that matches this path alone: Spark takes every path for a glob."""
    return re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", path)


def file_path_column() -> Column:
    """Return where each row was read, as `display_path` has it; Spark has it as a URI, where a plus is no space."""
    encoded = F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B"))
    return F.regexp_replace(F.url_decode(encoded), "^file:/+", "/")


def _statuses(spark: SparkSession, text: str) -> Iterator[Any]:
    """Yield Hadoop's status of every file."""
    path = java_path(spark, text if is_uri(text) else str(Path(text).absolute()))
    system = path.getFileSystem(spark._jsc.hadoopConfiguration())
    if system.exists(path):
        matches = [system.getFileStatus(path)]
    else:
        matches = list(system.globStatus(path) or []) if _GLOB.search(text) else []
    for match in matches:
        if not match.isDirectory():
            if not match.getLen():
                raise EvidenceError(f"{text}: {display_path(match.getPath().toString())} is empty")
            yield match
            continue
        root = match.getPath().toString()
        statuses = system.listFiles(match.getPath(), True)
        while statuses.hasNext():
            status = statuses.next()
            parts = status.getPath().toString()[len(root) + 1 :].split("/")
            if status.getLen() and not any(part.startswith(("_", ".")) for part in parts):
                yield status


def _stored(spark: SparkSession, status: Any) -> StoredFile:
    path, size = status.getPath(), int(status.getLen())
    name = path.getName()
    compressed = name.endswith(_COMPRESSED)
    stem = name.rpartition(".")[0] if compressed else name
    format_ = next((format_ for suffix, format_ in _SUFFIXES.items() if stem.endswith(suffix)), None)
    if format_ is None or (compressed and format_ == PARQUET):
        raise EvidenceError(f"{display_path(path.toString())}: its name must end in one of {', '.join(_SUFFIXES)}")
    torn = format_ == JSON and not compressed and _is_torn(spark, path, size)
    return StoredFile(path=path.toString(), size=size, format=format_, torn=torn)


def _is_torn(spark: SparkSession, path: Any, size: int) -> bool:
    """Return whether the last line has no end and is no JSON: many tools write no newline after the last line."""
    stream = path.getFileSystem(spark._jsc.hadoopConfiguration()).open(path)
    try:
        stream.seek(size - 1)
        if stream.read() == ord("\n"):
            return False
        stream.seek(max(0, size - LONGEST_LINE))
        assert spark._jvm is not None
        text = spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    try:
        json.loads(text.rpartition("\n")[2])
    except ValueError:
        return True
    return False
