"""What is parsed here of lines, well formed or not, is what Apache Spark makes of them."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from harness.analysis.sources import parsed_lines
from harness.analysis.sources.parsed_lines import CORRUPT, rows_of, with_corrupt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
"""How Apache Spark keeps the text of what does not fit."""
LINES = {
    "all that there are columns for": b'{"number":1,"half":0.5,"is":true,"text":"a","list":[1,2],"inner":{"x":3}}',
    "nothing": b"{}",
    "null": b'{"number":null,"half":null,"is":null,"text":null,"list":null,"inner":null}',
    "a key without a column": b'{"number":1,"other":[{}]}',
    "half a line": b'{"number":1,"text":"a',
    "no JSON": b"nonsense",
    "a number alone": b"12",
    "a text alone": b'"text"',
    "null alone": b"null",
    "null after an object": b'{"number":1} null',
    "null between two objects": b'{"number":1}null{"number":2}',
    "null after a brace in text": b'{"text":"{} null"}',
    "text in the place of a number": b'{"number":"1","text":"a"}',
    "a fraction in the place of a number": b'{"number":1.5,"text":"a"}',
    "a number too large": b'{"number":9223372036854775808,"text":"a"}',
    "the largest number": b'{"number":9223372036854775807}',
    "the smallest number": b'{"number":-9223372036854775808}',
    "a boolean in the place of a number": b'{"number":true,"half":false}',
    "a whole number in the place of a fraction": b'{"half":2}',
    "a whole number that no fraction is": b'{"half":9007199254740993}',
    "a whole number beyond all fractions": b'{"half":1' + b"0" * 400 + b"}",
    "no end of a number": b'{"half":-Infinity}',
    "a number in the place of a boolean": b'{"is":1,"text":"a"}',
    "a number in the place of text": b'{"text":12}',
    "a boolean in the place of text": b'{"text":true}',
    "an object in the place of text": b'{"text":{"a":[1,null],"b":"\xc3\xa9"}}',
    "text in a list of numbers": b'{"list":[1,"2"],"number":1}',
    "null in a list": b'{"list":[1,null]}',
    "an object in the place of a list": b'{"list":{},"number":1}',
    "text in an inner object": b'{"inner":{"x":"3"},"number":1}',
    "a list in the place of an object": b'{"inner":[],"number":1}',
    "escapes": b'{"text":"\\u00e9\\n\\"\\\\ \\ud83d\\ude00"}',
    "half a character": b'{"text":"a\\ud800b"}',
    "a list in itself, again and again": b'{"text":' + b"[" * 2000 + b"]" * 2000 + b"}",
    "a key twice": b'{"number":1,"number":2}',
    "spaces around": b'  {"number":1}  ',
    "another space before": b'\xc2\xa0{"number":1}',
    "something after the object": b'{"number":1} {"number":2}',
    "a control character in text": b'{"text":"a\tb"}',
    "the end of a writer": b'{"lines":3,"line":3,"chain":"0"}',
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_read_as_apache_spark_reads_it(name: str, apache_spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    inner = T.StructType([T.StructField("x", T.LongType())])
    schema = (
        T.StructType([T.StructField("number", T.LongType()), T.StructField("half", T.DoubleType())])
        .add("is", T.BooleanType())
        .add("text", T.StringType())
        .add("list", T.ArrayType(T.LongType()))
        .add("inner", inner)
    )
    (tmp_path / "lines.jsonl").write_bytes(LINES[name] + b"\n")
    columns = T.StructType([*with_corrupt(schema), T.StructField("lines", T.LongType())])
    lines = apache_spark.read.schema(columns).options(**PERMISSIVE).json(str(tmp_path / "lines.jsonl"))
    by_spark = [row.asDict(recursive=True) for row in lines.where(F.col("lines").isNull()).drop("lines").collect()]
    line, other = ("run", "file", LINES[name]), ("run", "file", b"nonsense")
    alone, (*beside, last) = (
        rows_of(lines, schema).select(with_corrupt(schema).names).to_pylist() for lines in ([line], [line, other])
    )
    assert alone == by_spark
    assert beside == by_spark
    assert last[CORRUPT] == "nonsense"


def test_small_tables_share_a_message_and_large_ones_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_lines, "MESSAGE_BYTES", 80)
    numbers = pa.schema([("number", pa.int64())])
    tables = [numbers.empty_table(), *(pa.table({"number": list(range(rows))}, numbers) for rows in (2, 3, 25, 1))]
    sizes = [len(message) for message in parsed_lines._messages(tables)]
    assert sizes == [5, 10, 10, 6]
    assert list(parsed_lines._messages([])) == []
