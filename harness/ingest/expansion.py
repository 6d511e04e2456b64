"""Does a file hold no more than one of its size is likely to? A few bytes can stand for more than any disk takes.

Parquet says in its footer how much it holds, and Spark reads no more than that; what is compressed is unpacked up to
the bound.
"""

import struct
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyarrow import parquet
from pyspark.sql import SparkSession

from harness.analysis.jvm import still_there
from harness.analysis.storage import PARQUET, StoredFile, display_path, java_path
from harness.errors import EvidenceError

EXPANSION = 100
"""How many times its size a file may hold, in bytes or in values of a column, if nobody says otherwise."""
ALWAYS_BYTES = 2**28
ALWAYS_VALUES = 1_000_000
"""So much is held by any file."""
_END = struct.Struct("<I4s")
"""How long the footer before it is, and what kind of Parquet that is."""
_MAGIC = b"PAR1"


def check_expansion(spark: SparkSession, file: StoredFile, expansion: int) -> None:
    """Refuse a file that holds too much; one that cannot be read is left to Spark, which says why.

    Raises:
        EvidenceError: it holds more than `expansion` times its size.
    """
    bytes_bound, values_bound = max(ALWAYS_BYTES, expansion * file.size), max(ALWAYS_VALUES, expansion * file.size)
    try:
        if file.format == PARQUET:
            bytes_held, values_held = _stated(_footer(spark, file))
        else:
            bytes_held, values_held = _unpacked(spark, file, bytes_bound + 1), 0
    except Py4JError as error:
        still_there(error)
        return
    except pa.ArrowException:
        return
    for held, bound, unit in ((bytes_held, bytes_bound, "bytes"), (values_held, values_bound, "values in a column")):
        if held > bound:
            raise EvidenceError(
                f"{display_path(file.path)}: its {file.size:,} bytes hold more than {bound:,} {unit}, as no history "
                f"does; --expansion, {expansion} times a file's size now, raises the bound"
            )


def _stated(footer: Any) -> tuple[int, int]:
    """Return how many bytes all columns have when they are unpacked, and how many values the longest has."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    values = (sum(group.column(number).num_values for group in groups) for number in range(footer.num_columns))
    rows = sum(group.num_rows for group in groups)
    return sum(group.total_byte_size for group in groups), max(rows, *values, 0)


def _footer(spark: SparkSession, file: StoredFile) -> Any:
    """Return what Arrow makes of the footer alone; raises ArrowException where it is none."""
    length, _ = _END.unpack(_from(spark, file, max(0, file.size - _END.size)).rjust(_END.size))
    end = _from(spark, file, max(0, file.size - _END.size - length))
    return parquet.read_metadata(pa.BufferReader(_MAGIC + end))


def _from(spark: SparkSession, file: StoredFile, offset: int) -> bytes:
    """Return the bytes of a file from an offset on."""
    assert spark._jvm is not None
    stream = _opened(spark, file)
    try:
        stream.seek(offset)
        return bytes(spark._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
    finally:
        stream.close()


def _unpacked(spark: SparkSession, file: StoredFile, limit: int) -> int:
    """Return how many bytes compressed text has, of which no more than `limit` are looked at; 0 for any other."""
    assert spark._jvm is not None
    hadoop = spark._jvm.org.apache.hadoop
    codecs = hadoop.io.compress.CompressionCodecFactory(spark._jsc.hadoopConfiguration())
    codec = codecs.getCodec(java_path(spark, file.path))
    if codec is None:
        return 0
    stream = codec.createInputStream(_opened(spark, file))
    try:
        return int(spark._jvm.org.apache.commons.io.IOUtils.skip(stream, limit))
    finally:
        stream.close()


def _opened(spark: SparkSession, file: StoredFile) -> Any:
    path = java_path(spark, file.path)
    return path.getFileSystem(spark._jsc.hadoopConfiguration()).open(path)
