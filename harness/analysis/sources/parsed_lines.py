"""How do lines become rows? Arrow parses them here, block by block; engines read the Parquet files that they go to.

What has another type than its column is null, and the text of such a line, or of one that is no JSON, is kept. Where
lines of a block do not fit, each is parsed as Apache Spark parses JSON.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from harness.analysis.engine.compat import checkpoint, scanned, to_read
from harness.analysis.frames import balanced_union
from harness.analysis.sources.arrow_lines import arrow_rows
from harness.analysis.sources.lines import ENDS

CORRUPT = "corrupt"
"""Column with the text of a line that does not fit."""
BLOCK_BYTES = 2**23
"""Bytes of a file that are read at once."""
LINES_AT_ONCE = 20_000
"""Lines that are parsed at once."""
MESSAGE_BYTES = 2**25
"""A part that goes to the engine; gRPC takes no message above four times that."""
TAKEN_ALONG_BYTES = 2**20
"""A part no larger than that may go to the engine with every plan."""
_SPACE = " \t\r\n"
"""What JSON takes for space."""
_LARGEST_LONG = 2**63
_NO_NUMBERS = (b"NaN", b"Inf")
"""What Arrow takes for a number of JSON, and Spark does not."""
_NULL_BEHIND = re.compile(rb"\}[ \t\r]*null")
"""What no object of JSON holds but in a text."""

Item = TypeVar("Item")
Line = tuple[str, str, bytes]
"""Run id, file within the run folder, and a line without its end."""


def lines_of(path: Path, run_id: str, file: str) -> Iterator[Line]:
    """Yield the lines of a file that are not blank."""
    with path.open("rb") as stream:
        while block := stream.read(BLOCK_BYTES) + stream.readline():
            yield from ((run_id, file, line) for line in block.splitlines() if line.strip())


def with_corrupt(schema: T.StructType) -> T.StructType:
    """Return the columns of a line, and `CORRUPT`."""
    return T.StructType([*schema.fields, T.StructField(CORRUPT, T.StringType())])


def stored_rows(spark: SparkSession, lines: Iterable[Line], schema: T.StructType, path: Path) -> DataFrame | None:
    """Return the rows of lines, written to a Parquet file; None if there are no lines.

    Raises:
        OSError: the file cannot be written.
    """
    rows = (rows_of(block, schema) for block in blocks(lines))
    if (first := next(rows, None)) is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    with parquet.ParquetWriter(path, first.schema) as writer:
        for part in chain([first], rows):
            writer.write_table(part)
    return scanned(spark.read.schema(from_arrow_schema(first.schema)).parquet(to_read(spark, path)))


def rows_of(lines: Sequence[Line], schema: T.StructType) -> pa.Table:
    """Return one row a line that is no writer's end: its columns, `CORRUPT`, `run_id` and `file`."""
    places = (T.StructField(name, T.StringType()) for name in ("run_id", "file"))
    columns = to_arrow_schema(T.StructType([*with_corrupt(schema), *places]))
    run_ids, files, texts = zip(*lines, strict=True)
    rows = table_of(texts, T.StructType([*schema, T.StructField(ENDS, T.LongType())]))
    if rows is None:
        one_by_one = (_row(line, schema) for line in lines)
        return pa.Table.from_pylist([row for row in one_by_one if row is not None], schema=columns)
    return with_columns(rows, {"run_id": run_ids, "file": files}, columns).filter(pc.is_null(rows[ENDS]))


def with_columns(rows: pa.Table, more: Mapping[str, Sequence[Any]], columns: pa.Schema) -> pa.Table:
    """Return these columns of rows, of values beside them, or of nothing."""

    def column(field: pa.Field) -> Any:
        if field.name in more:
            return pa.array(more[field.name], field.type)
        return rows[field.name] if field.name in rows.column_names else pa.nulls(len(rows), field.type)

    return pa.table([column(field) for field in columns], schema=columns)


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield what is parsed at once."""
    rest = iter(items)
    return iter(lambda: list(islice(rest, LINES_AT_ONCE)), [])


def table_of(texts: Sequence[bytes], schema: T.StructType, keys: Collection[str] | None = None) -> pa.Table | None:
    """Return lines as Arrow parses them, a row each; None where one may not fit, and all are to be parsed one by one.

    Args:
        texts: Lines that are not blank, without their ends.
        schema: The columns.
        keys: All keys that a line may have, with or without a column; None for any.
    """
    text = b"\n".join(texts) + b"\n"
    if not _is_one_object_a_line(text, len(texts)) or any(word in text for word in _NO_NUMBERS):
        return None
    try:
        text.decode()
        rows = arrow_rows(pa.BufferReader(text), len(text), to_arrow_schema(schema), other_keys=keys is None)
    except (pa.ArrowException, ValueError):
        return None
    known = keys is None or {*keys} >= {*rows.column_names} - {*schema.names}
    return rows if known and len(rows) == len(texts) else None


def _is_one_object_a_line(text: bytes, lines: int) -> bool:
    """Return whether each of so many lines begins and ends as an object does, and none has `null` behind an object.

    To Arrow an object may go on in the next line, and `null` where an object should be ends the process.
    """
    if not (text.startswith(b"{") and text.endswith(b"}\n") and text.count(b"}\n{") == lines - 1):
        return False
    return _NULL_BEHIND.search(text) is None


def in_messages(spark: SparkSession, tables: Iterable[pa.Table]) -> DataFrame | None:
    """Return the rows of tables, each with some or none, as a frame; None if there are no tables.

    What is large goes to the engine once, in messages that it takes; a frame of what is small takes it along.
    """
    frames = []
    for message in _messages(tables):
        frame = spark.createDataFrame(message, from_arrow_schema(message.schema))
        frames.append(checkpoint(frame) if message.nbytes > TAKEN_ALONG_BYTES else frame)
    return balanced_union(frames) if frames else None


def _messages(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of all tables in messages, each as large as the engine takes.

    Small tables share one: Sail 0.7.2 filters a union of three or more frames that go along with the plan by a column
    that it does not find.
    """
    waiting: list[pa.Table] = []
    for part in (part for table in tables for part in _parts(table)):
        if waiting and sum(each.nbytes for each in waiting) + part.nbytes > MESSAGE_BYTES:
            yield pa.concat_tables(waiting)
            waiting = []
        waiting.append(part)
    if waiting:
        yield pa.concat_tables(waiting)


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows in parts that a message holds; of no rows an empty one."""
    rows = max(1, len(table) * MESSAGE_BYTES // max(table.nbytes, 1))
    return (table.slice(first, rows) for first in range(0, max(len(table), 1), rows))


def _row(line: Line, schema: T.StructType) -> dict[str, Any] | None:
    """Return the columns of one line that have a value; None for the end of a writer."""
    run_id, file, text = line
    place = {"run_id": run_id, "file": file}
    content = object_of(text)
    if content is None:
        return {CORRUPT: text.decode(errors="replace"), **place}
    if isinstance(content.get(ENDS), int):
        return None
    row, fits = fitted(content, schema)
    return row | place | ({} if fits else {CORRUPT: text.decode()})


class Pairs(dict[str, Any]):
    """An object of JSON that also knows the values of a key before its last."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        """Take all pairs of key and value in their order."""
        self.pairs = [(_whole(key), _whole(value)) for key, value in pairs]
        super().__init__(self.pairs)


def _whole(value: Any) -> Any:
    """Return a value of JSON in which half a character is a `?`; objects have seen to themselves."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    return [_whole(each) for each in value] if isinstance(value, list) else value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


OWN = json.JSONDecoder()
"""Takes the lines of a run, whose writers are known."""
OTHERS = json.JSONDecoder(object_pairs_hook=Pairs, parse_constant=_refuse)
"""Takes those of others, where NaN and Infinity are refused, and each value of a key that comes again must fit."""


def object_of(text: bytes, decoder: json.JSONDecoder = OWN) -> dict[str, Any] | None:
    """Return the object of JSON that a line is; None if it is none."""
    try:
        content = _parsed(text.decode().lstrip(_SPACE), decoder)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _parsed(text: str, decoder: json.JSONDecoder) -> Any:
    content, _ = decoder.raw_decode(text)  # whatever follows an object, Spark passes over
    if "\\u" not in text or isinstance(content, Pairs):
        return content
    return json.loads(json.dumps(content, ensure_ascii=False).encode(errors="replace"))  # half a character is a "?"


def fitted(content: Mapping[str, Any], schema: T.StructType) -> tuple[dict[str, Any], bool]:
    """Return the fields that there are columns for, those that do not fit without a value, and whether all fit."""
    types = _types(schema)
    row, fits = {}, True
    for name, value in content.pairs if isinstance(content, Pairs) else content.items():
        if name in types:
            row[name], fitting = _value(value, types[name])
            fits &= fitting
    return row, fits


def _types(schema: T.StructType) -> dict[str, T.DataType]:
    return {field.name: field.dataType for field in schema.fields}


def _value(value: Any, wanted: T.DataType) -> tuple[Any, bool]:
    """Return what a column holds of a value, and whether it fits; a text column holds what is no text as JSON."""
    if value is None:
        return None, True
    if isinstance(wanted, T.StringType):
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False), True
    if isinstance(wanted, T.StructType):
        return fitted(value, wanted) if isinstance(value, dict) else (None, False)
    if isinstance(wanted, T.ArrayType):
        return _elements(value, wanted.elementType) if isinstance(value, list) else (None, False)
    if isinstance(value, bool) or not isinstance(value, int | float):
        fits = isinstance(value, bool) and isinstance(wanted, T.BooleanType)
        return (value, True) if fits else (None, False)
    return _number(value, wanted)


def _elements(values: Sequence[Any], wanted: T.DataType) -> tuple[list[Any] | None, bool]:
    elements = [_value(value, wanted) for value in values]
    fits = all(fitting for _, fitting in elements)
    return ([element for element, _ in elements] if fits else None), fits


def _number(value: int | float, wanted: T.DataType) -> tuple[int | float | None, bool]:
    if isinstance(wanted, T.DoubleType):
        try:
            return float(value), True  # Arrow refuses a whole number that it would have to round
        except OverflowError:
            return (math.inf if value > 0 else -math.inf), True
    fits = isinstance(wanted, T.LongType) and isinstance(value, int) and -_LARGEST_LONG <= value < _LARGEST_LONG
    return (value, True) if fits else (None, False)
