"""Reads Parquet files of others by each engine, with the file of each row.

Apache Spark provides it for any row. Sail does not: its tables are read one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.compat import is_connect, is_sail
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.session import configured
from harness.analysis.engine.storage import file_path_column, literal_glob
from harness.analysis.sources.parsed_lines import in_messages
from harness.ingest.files import Files, StoredFile
from harness.ingest.hadoop_files import HadoopFiles
from harness.ingest.local_files import LocalFiles, local_path

FILE, LINE = "file", "line"
"""The file of a row, and its line number from one."""
KEYS, BROKEN = "keys", "broken"
"""Keys of a line, including those without a column, and whether it is not a JSON object, or has a value of another
type."""
_ONE_TASK = {"spark.sql.files.openCostInBytes": str(2**60), "spark.sql.files.maxPartitionBytes": str(2**62)}
"""Reads each file in one task, so that rows keep their order."""


def files_of(spark: SparkSession) -> Files:
    """Return the file systems that an engine can read."""
    return LocalFiles() if is_connect(spark) else HadoopFiles(spark)


def tables(spark: SparkSession, files: Sequence[StoredFile]) -> list[Sequence[StoredFile]]:
    """Return the groups of Parquet files that are read as one table."""
    return [[file] for file in files] if is_sail(spark) else [files] if files else []


def table(spark: SparkSession, files: Sequence[StoredFile]) -> DataFrame:
    """Return Parquet files that are read as one table, without the file of each row."""
    if is_sail(spark):
        return _table_of_sail(spark, local_path(files[0].path))
    return spark.read.option("mergeSchema", True).parquet(*(literal_glob(file.path) for file in files))


def named(rows: DataFrame, files: Sequence[StoredFile]) -> DataFrame:
    """Return the rows of such a table with `FILE`."""
    place = F.lit(files[0].shown) if is_sail(rows.sparkSession) else file_path_column()
    return rows.withColumn(FILE, place)


def numbered(rows: DataFrame, files: Sequence[StoredFile]) -> DataFrame:
    """Return the rows of a table of one file with `LINE`; the caller is `in_order`."""
    if is_sail(rows.sparkSession):
        return _made_here(rows.sparkSession, _with_lines(_parts(local_path(files[0].path), rows.columns)))
    return _numbered(rows)


def _table_of_sail(spark: SparkSession, path: Path) -> DataFrame:
    rows = spark.read.parquet(path.as_uri())
    try:
        _ = rows.schema
    except PySparkException as error:  # Sail 0.7.2 knows no values that Arrow has from a dictionary
        raise_if_engine_lost(error)
        return _made_here(spark, _parts(path, parquet.read_schema(path).names))
    return rows


def _made_here(spark: SparkSession, parts: Iterable[pa.Table]) -> DataFrame:
    frame = in_messages(spark, parts)
    assert frame is not None, "a table has parts"
    return frame


def _parts(path: Path, names: list[str]) -> Iterator[pa.Table]:
    """Yield a table's row groups in types that every engine takes, then an empty one: it may have no row group."""
    with parquet.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield _plain(file.read_row_group(number, columns=names))
        yield _plain(file.schema_arrow.empty_table().select(names))


def _with_lines(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    first = 1
    for part in parts:
        last = first + part.num_rows
        yield part.append_column(LINE, pa.array(range(first, last), pa.int64()))
        first = last


def _plain(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([field.with_type(_plain_type(field.type)) for field in rows.schema]))


def _plain_type(of: pa.DataType) -> pa.DataType:
    """Return the type of the same values without a dictionary, and without unsigned integers."""
    if pa.types.is_dictionary(of):
        return _plain_type(of.value_type)
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return pa.list_(of.value_field.with_type(_plain_type(of.value_type)))
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in of])
    return pa.decimal128(20, 0) if pa.types.is_unsigned_integer(of) else of


def in_order(spark: SparkSession) -> AbstractContextManager[None]:
    """Read each file in one task meanwhile, so that the numbers of its rows are those of its lines."""
    return nullcontext() if is_sail(spark) else configured(spark, _ONE_TASK)


def _numbered(rows: DataFrame) -> DataFrame:
    return rows.withColumn(LINE, F.monotonically_increasing_id() + 1)
