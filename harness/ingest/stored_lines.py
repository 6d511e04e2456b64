"""Lines of others become rows of Parquet, once: by Arrow if all of a block fit, else one by one.

Engines read these rows only, so a line is parsed once, however many questions there are about it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.engine.compat import to_read
from harness.analysis.engine.hadoop import Folder
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.parsed_lines import OTHERS, fitted, object_of, table_of, with_columns
from harness.errors import EvidenceError
from harness.ingest.files import BYTE_ORDER_MARK, Files, StoredFile
from harness.ingest.formats import Format
from harness.ingest.reading import BROKEN, FILE, KEYS, LINE
from harness.system.chain import is_writers_end

BLOCK_BYTES = 2**23
"""Bytes of lines that are parsed at once, and become one group of rows."""
_PLACES = (
    T.StructField(KEYS, T.ArrayType(T.StringType())),
    T.StructField(BROKEN, T.BooleanType()),
    T.StructField(FILE, T.StringType()),
    T.StructField(LINE, T.LongType()),
)


def stored_lines(
    spark: SparkSession, where: Files, files: Sequence[StoredFile], form: Format, into: Folder
) -> DataFrame:
    """Return one row a line: the columns of its kind, `KEYS`, `BROKEN`, `FILE` and `LINE`; rows are written to `into`.

    Blank lines and end lines of writers are left out.

    Raises:
        EvidenceError: a file cannot be read, or no rows can be written.
    """
    path = into / f"{form.kind}.parquet"
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(where, files, form, path)
    else:
        with TemporaryDirectory(prefix="chaos-lines-") as temporary:
            _write(where, files, form, Path(temporary, path.name))
            path.copy_from(Path(temporary, path.name))
    return spark.read.schema(_columns(form)).parquet(to_read(spark, path))


def _columns(form: Format) -> T.StructType:
    return T.StructType([*SCHEMAS[form.kind], *_PLACES])


def _write(where: Files, files: Sequence[StoredFile], form: Format, path: Path) -> None:
    try:
        with parquet.ParquetWriter(path, to_arrow_schema(_columns(form))) as writer:
            for file in files:
                for part in parsed_parts(where, file, SCHEMAS[form.kind], form.names):
                    writer.write_table(part)
    except (OSError, pa.ArrowException) as error:
        raise EvidenceError(f"the history cannot be judged: {path}: cannot be written: {error}") from error


def parsed_parts(where: Files, file: StoredFile, schema: T.StructType, keys: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of a file in parts, a row each line.

    Args:
        where: The file system.
        file: A file of lines.
        schema: The columns that have values of a line.
        keys: All keys that a line may have, with or without a column.

    Raises:
        EvidenceError: the file cannot be read.
    """
    columns = to_arrow_schema(T.StructType([*schema, *_PLACES]))
    for numbers, texts in _blocks(where, file):
        place = {FILE: [file.shown] * len(texts), LINE: numbers}
        if (rows := table_of(texts, schema, keys)) is not None:
            place[BROKEN] = [False] * len(texts)
        else:
            rows = pa.Table.from_pylist([_row(text, schema) for text in texts], columns)
        yield with_columns(rows, place, columns)


def _row(text: bytes, schema: T.StructType) -> dict[str, Any]:
    content = object_of(text, OTHERS)
    if content is None:
        return {BROKEN: True}
    row, fits = fitted(content, schema)
    return row | {KEYS: list(content), BROKEN: not fits}


def text_of(where: Files, file: StoredFile, number: int) -> str:
    """Return a line by its number, from one, as a person reads it."""
    for numbers, texts in _blocks(where, file):
        if number <= numbers[-1]:
            return texts[numbers.index(number)].decode(errors="replace")
    raise EvidenceError(f"{file.shown}: it has no line {number} now")


def _blocks(where: Files, file: StoredFile) -> Iterator[tuple[Sequence[int], Sequence[bytes]]]:
    """Yield number, from one, and text of the lines that are neither blank nor a writer's end, a block at a time."""
    read = 0
    try:
        with where.text(file.path) as stream:
            while block := stream.read(BLOCK_BYTES) + stream.readline():
                texts = (block if read else block.removeprefix(BYTE_ORDER_MARK)).splitlines()
                numbered = [(number, text) for number, text in enumerate(texts, read + 1) if _is_evidence(text)]
                if numbered:
                    yield tuple(zip(*numbered, strict=True))  # type: ignore[misc]
                read += len(texts)
    except EvidenceError as error:
        raise EvidenceError(f"the history cannot be judged: {error}") from error


def _is_evidence(text: bytes) -> bool:
    return bool(text.strip(b" ")) and not is_writers_end(text)
