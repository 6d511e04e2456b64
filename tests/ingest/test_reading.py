"""What the reader makes of the lines of others, well formed or not, is what Apache Spark makes of them."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.engine.storage import file_path_column
from harness.analysis.sources.parsed_lines import CORRUPT, with_corrupt
from harness.ingest.files import stored_files
from harness.ingest.local_files import LocalFiles
from harness.ingest.reading import BROKEN, FILE, KEYS, LINE
from harness.ingest.stored_lines import parsed_parts, text_of
from harness.store.history import LINK
from harness.system.chain import WRITERS_END, all_chained
from tests.analysis.sources.test_parsed_lines import LINES, PERMISSIVE

pytestmark = [pytest.mark.spark, pytest.mark.jvm]

TEXT = "text"
SCHEMA = (
    T.StructType([T.StructField("number", T.LongType()), T.StructField("half", T.DoubleType())])
    .add("is", T.BooleanType())
    .add("words", T.StringType())
    .add("list", T.ArrayType(T.LongType()))
    .add("inner", T.StructType([T.StructField("x", T.LongType())]))
)
# `text` is the line itself
CONTENTS = {name: line.replace(b'"text"', b'"words"') + b"\n" for name, line in LINES.items()} | {
    "no number": b'{"half":NaN}\n',
    "no end of a number in a key without a column": b'{"other":Infinity}\n',
    "a key twice, of which the first does not fit": b'{"number":"a","number":2}\n',
    "a key twice, of which the last does not fit": b'{"number":2,"number":"a"}\n',
    "a key twice, within": b'{"inner":{"x":"a","x":1}}\n',
    "half a character in a key": b'{"\\ud800":1}\n',
    "a byte order mark": b'\xef\xbb\xbf{"number":1}\n{"number":2}\n',
    "a byte order mark in the second line": b'{"number":2}\n\xef\xbb\xbf{"number":1}\n',
    "a byte order mark after a blank line": b'\n\xef\xbb\xbf{"number":1}\n',
    "an object that goes on in the next line, after another": b'{"number":1}{\n"number":2}\n',
    "two objects in a line, and a line without any": b'{"number":1}{"number":2}\n\t\n',
    "a byte order mark alone": b"\xef\xbb\xbf\n",
    "no UTF-8": b'{"words":"\xff","number":1}\n',
    "no UTF-8 after the object": b'{"number":1} \xff\n',
    "blank lines": b'\n  \n{"number":1}\n\n',
    "a tab alone": b"\t\n",
    "a vertical tab before": b'\x0b{"number":1}\n',
    "ends of every kind": b'{"number":1}\r\n{"number":2}\r{"number":3}\n\r{"number":4}',
    "a separator of lines that JSON takes for text": '{"words":"a\u2028b\x85c"}\n'.encode(),
    "nothing of a number": b'{"number":-0,"half":-0.0}\n',
    "a number with an exponent": b'{"number":1e2,"half":1e2}\n',
    "zeroes before a number": b'{"number":01}\n',
    "a number with an exponent beyond all fractions": b'{"half":1e400}\n',
    "an inner object twice": b'{"inner":{"x":1},"inner":{}}\n',
    "a comma at the end": b'{"number":1,}\n',
    "lines with a chain, and the end of their writer": b"".join(all_chained([b'{"number":1}\n', b'{"is":true}\n'])),
    "a line without a chain after one that has it": next(all_chained([b'{"number":1}\n'])) + b'{"number":2}\n',
    "no end of a writer": b'{"lines":1,"line":1}\n{"lines":1,"line":1,"chain":"00000000"} \n{"lines":1}\n',
}


def what_counts(row: dict[str, Any]) -> dict[str, Any]:
    """Return what becomes of a row: of one that is no line, its text alone."""
    if row[BROKEN]:
        return {BROKEN: True, TEXT: row[TEXT]}
    inner = row.get("inner")
    values = {name: row.get(name) for name in SCHEMA.names} | {
        "inner": None if inner is None else {"x": inner.get("x")}
    }
    unknown = [key for key in dict.fromkeys(row[KEYS] or ()) if key not in KNOWN]
    return values | {BROKEN: False, TEXT: row[TEXT], KEYS: unknown}


KNOWN = [*SCHEMA.names, *LINK, "other"]
"""Keys that a line may have; three of them have no column."""
Rows = list[dict[str, Any]]


def parsed(path: Path) -> Rows:
    """Return the rows of a file as the reader makes them."""
    where = LocalFiles()
    (file,) = stored_files(where, str(path))
    rows = [row for part in parsed_parts(where, file, SCHEMA, KNOWN) for row in part.to_pylist()]
    assert {row[FILE] for row in rows} <= {file.shown}
    return [what_counts(row | {TEXT: text_of(where, file, row[LINE])}) for row in rows]


def by_apache_spark(spark: SparkSession, paths: list[str]) -> list[Row]:
    """Return the lines of files as Apache Spark reads them."""
    line = F.col("value")
    texts = spark.read.text(paths).where((F.length(F.trim(line)) > 0) & ~line.rlike(WRITERS_END))
    parsed = F.from_json(line, with_corrupt(SCHEMA), PERMISSIVE)
    rows = texts.withColumns(
        {"parsed": parsed, KEYS: F.json_object_keys(line), TEXT: line, FILE: file_path_column()}
    ).withColumn(BROKEN, F.col(f"parsed.{CORRUPT}").isNotNull() | F.col(KEYS).isNull() | ~F.is_valid_utf8(line))
    return rows.select(*(f"parsed.{name}" for name in SCHEMA.names), KEYS, BROKEN, FILE, TEXT).collect()


@pytest.fixture(scope="module")
def read(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Rows, Path]]:
    """The rows of each file as Apache Spark reads them, and the file."""
    folder = tmp_path_factory.mktemp("lines")
    for name, content in CONTENTS.items():
        (folder / f"{name}.jsonl").write_bytes(content)
    files = stored_files(LocalFiles(), str(folder))
    by_spark: dict[str, Rows] = {file.shown: [] for file in files}
    for row in by_apache_spark(spark, [file.path for file in files]):
        by_spark[row[FILE]].append(what_counts(row.asDict(recursive=True)))
    return {Path(path).stem: (rows, Path(path)) for path, rows in by_spark.items()}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_line_of_others_is_read_as_apache_spark_reads_it(name: str, read: dict[str, tuple[Rows, Path]]) -> None:
    by_spark, path = read[name]
    assert parsed(path) == by_spark


@pytest.mark.parametrize("name", CONTENTS)
def test_so_it_is_beside_a_line_that_does_not_fit(
    name: str, read: dict[str, tuple[Rows, Path]], tmp_path: Path
) -> None:
    by_spark, path = read[name]
    beside = tmp_path / "beside.jsonl"
    beside.write_bytes(path.read_bytes() + b"\nnonsense\n")
    assert parsed(beside) == [*by_spark, {BROKEN: True, TEXT: "nonsense"}]
