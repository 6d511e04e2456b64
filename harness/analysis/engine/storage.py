"""How do Hadoop, Spark and a person write a path, and what do they say when it cannot be read?"""

import re
from collections.abc import Iterator

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.jvm import MORE_MEMORY, OUT_OF_MEMORY

LONGEST_REASON = 300


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
    """Return the glob that matches this path alone: Spark reads every path as a glob."""
    return re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", path)


def file_path_column() -> Column:
    """Return where each row was read, as `display_path` has it; Spark has it as a URI, where a plus is no space."""
    encoded = F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B"))
    return F.regexp_replace(F.url_decode(encoded), "^file:/+", "/")
