"""Reads files of evidence by each engine, with the file of each row.

Apache Spark provides it for any row. Sail does not, nor which lines are invalid: its lines are parsed here, by Arrow
if all of a block fit and else one by one, and its tables are read one by one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.engine.compat import is_connect, is_sail
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.session import configured
from harness.analysis.engine.storage import file_path_column, literal_glob
from harness.analysis.sources.parsed_lines import (
    OTHERS,
    blocks,
    fitted,
    in_messages,
    object_of,
    table_of,
    with_columns,
)
from harness.analysis.sources.reading import CORRUPT, PERMISSIVE, no_rows, with_corrupt
from harness.errors import EvidenceError
from harness.ingest.files import BYTE_ORDER_MARK, Files, StoredFile
from harness.ingest.formats import CHAIN, LINE_NUMBER
from harness.ingest.hadoop_files import HadoopFiles
from harness.ingest.local_files import LocalFiles, local_path, opened
from harness.system.chain import WRITERS_END, is_writers_end

FILE, LINE, TEXT = "file", "line", "text"
"""The file of a row, its line number from one, and its text."""
KEYS, BROKEN = "keys", "broken"
"""Keys of a line, including those without a column, and whether it is not a JSON object, or has a value of another
type."""
_BESIDE = {
    KEYS: T.ArrayType(T.StringType()),
    BROKEN: T.BooleanType(),
    FILE: T.StringType(),
    TEXT: T.StringType(),
    LINE: T.LongType(),
}
_LINKS = [T.StructField(LINE_NUMBER, T.LongType()), T.StructField(CHAIN, T.StringType())]
_ONE_TASK = {"spark.sql.files.openCostInBytes": str(2**60), "spark.sql.files.maxPartitionBytes": str(2**62)}
"""Reads each file in one task, so that rows keep their order."""


def files_of(spark: SparkSession) -> Files:
    """Return the file systems that an engine can read."""
    return LocalFiles() if is_connect(spark) else HadoopFiles(spark)


def lines(
    spark: SparkSession, files: Sequence[StoredFile], schema: T.StructType, *more: str, having: str = ""
) -> DataFrame:
    """Return one row a line: columns of `schema`, `KEYS`, `BROKEN` and `FILE`, and `TEXT` if named.

    Blank lines and end lines of writers are left out; so are lines without the text `having`.

    Raises:
        EvidenceError: a file cannot be read; Apache Spark raises it when the rows are read.
    """
    if is_sail(spark):
        return _parsed_here(spark, files, schema, *more, having=having)
    texts = spark.read.text([literal_glob(file.path) for file in files])
    return _parsed(texts.where(F.col("value").contains(having)) if having else texts, schema, *more)


def numbered_lines(spark: SparkSession, file: StoredFile, schema: T.StructType) -> DataFrame:
    """Return the same of one file with `LINE` and `TEXT`."""
    if is_sail(spark):
        return _parsed_here(spark, [file], schema, LINE, TEXT)
    return _parsed(_numbered(spark.read.text(literal_glob(file.path))), schema, LINE, TEXT)


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


def _parsed(texts: DataFrame, schema: T.StructType, *more: str) -> DataFrame:
    line = F.col("value")
    parsed = F.from_json(line, with_corrupt(schema), PERMISSIVE)
    return (
        texts.where((F.length(F.trim(line)) > 0) & ~line.rlike(WRITERS_END))
        .withColumns({"parsed": parsed, KEYS: F.json_object_keys(line), TEXT: line, FILE: file_path_column()})
        .withColumn(BROKEN, F.col(f"parsed.{CORRUPT}").isNotNull() | F.col(KEYS).isNull() | ~F.is_valid_utf8(line))
        .select(*(f"parsed.{name}" for name in schema.names), KEYS, BROKEN, FILE, *more)
    )


def _parsed_here(
    spark: SparkSession, files: Sequence[StoredFile], schema: T.StructType, *more: str, having: str = ""
) -> DataFrame:
    names = (KEYS, BROKEN, FILE, *more)
    columns = T.StructType([*schema, *(T.StructField(name, _BESIDE[name]) for name in names)])
    frame = in_messages(spark, (part for file in files for part in parsed_parts(file, schema, columns, having)))
    if frame is None:
        return no_rows(spark, [(field.name, field.dataType.simpleString()) for field in columns])
    return frame


def parsed_parts(file: StoredFile, schema: T.StructType, columns: T.StructType, having: str = "") -> Iterator[pa.Table]:
    """Yield the result of `numbered_lines` for a file, without any engine, in parts, for the named columns.

    Lines without the text `having` are left out.

    Raises:
        EvidenceError: the file cannot be read.
    """
    wanted = to_arrow_schema(columns)
    known = T.StructType([*schema, *_LINKS]) if file.chained else schema
    word = having.encode()
    for block in blocks((number, text) for number, text in _lines_of_evidence(file) if word in text):
        numbers, texts = zip(*block, strict=True)
        shown = [text.decode(errors="replace") for text in texts]
        place = {FILE: [file.shown] * len(block), LINE: numbers, TEXT: shown}
        if (rows := table_of(texts, known, other_keys=False)) is not None:
            place |= {KEYS: _links(rows), BROKEN: [False] * len(block)}
        else:
            rows = pa.Table.from_pylist([_row(text, schema) for text in texts], wanted)
        yield with_columns(rows, place, wanted)


def _links(rows: pa.Table) -> list[list[str]]:
    """Return each row's keys of its place in its file: they get no column."""
    if CHAIN not in rows.column_names:
        return [[]] * len(rows)
    return [[LINE_NUMBER, CHAIN] if has_chain else [] for has_chain in rows[CHAIN].is_valid().to_pylist()]


def _row(text: bytes, schema: T.StructType) -> dict[str, Any]:
    content = object_of(text, OTHERS)
    if content is None:
        return {BROKEN: True}
    row, fits = fitted(content, schema)
    return row | {KEYS: list(content), BROKEN: not fits}


def _lines_of_evidence(file: StoredFile) -> Iterator[tuple[int, bytes]]:
    """Yield number, from one, and text of every line that is neither blank nor a writer's end."""
    numbered_texts = enumerate(_texts(file), start=1)
    return ((number, text) for number, text in numbered_texts if text.strip(b" ") and not is_writers_end(text))


def _texts(file: StoredFile) -> Iterator[bytes]:
    try:
        with opened(file.path) as stream:
            lines = BufferedReader(stream)
            yield from next(lines, b"").removeprefix(BYTE_ORDER_MARK).splitlines()
            for text in lines:
                yield from text.splitlines()
    except (OSError, EOFError, pa.ArrowException) as error:
        raise EvidenceError(f"the history cannot be judged: {file.shown}: {error}") from error
