"""How are lines read as typed rows, without tolerating anything?"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.sources.arrow_lines import arrow_rows
from harness.analysis.sources.lines import ENDS

Columns = dict[str, Any]
Files = Sequence[tuple[Path, int]]
"""Files of lines, and how many lines each has."""


class Odd(Exception):
    """Evidence that is not in perfect order, which no error is."""


class Layout:
    """The columns that lines have."""

    def __init__(self, struct: T.StructType) -> None:
        self.schema = to_arrow_schema(struct)
        self.with_end = self.schema.append(pa.field(ENDS, pa.int64()))
        """The same with what only a writer's end has."""


def json_rows(source: Any, size_bytes: int, layout: Layout, lines: int) -> pa.Table:
    """Return lines of so many bytes as typed rows, without a writer's end."""
    if not lines:
        return layout.with_end.empty_table()
    table = arrow_rows(source, size_bytes, layout.with_end)
    require(table.num_rows == lines, "lines are joined, empty or torn")
    return table if table[ENDS].null_count == lines else table.filter(pc.is_null(table[ENDS]))


def file_rows(path: Path, layout: Layout, lines: int) -> pa.Table:
    """Return the lines of a whole file."""
    if lines:
        with path.open("rb") as file:
            file.seek(-1, 2)
            require(file.read() == b"\n", "the last line is torn")
    return json_rows(path, path.stat().st_size, layout, lines)


def require(holds: Any, what: str) -> None:
    """Raise `Odd` where something does not hold."""
    if not holds:
        raise Odd(what)


def require_known(columns: Mapping[str, Any] | pa.Table, *names: str) -> None:
    """Require a value in every row of some columns."""
    for name in names:
        require(columns[name].null_count == 0, f"`{name}` is missing")


def require_words(table: pa.Table, name: str, words: Iterable[str]) -> None:
    """Require that a column has none but these words."""
    unknown = set(table[name].unique().to_pylist()) - set(words)
    require(not unknown, f"`{name}` has an unknown value: {unknown}")


def require_unique(table: pa.Table, *names: str) -> None:
    """Require that no two rows share these columns."""
    require(table.group_by(list(names)).aggregate([]).num_rows == table.num_rows, f"two lines have one {names}")


def where(table: pa.Table, name: str, *values: str) -> pa.Table:
    """Return the rows in which a column has one of these values."""
    return table.filter(pc.is_in(table[name], pa.array(values)))


def null_if_unknown(column: Any) -> Any:
    """Return numbers with null in the place of -1."""
    return pc.if_else(pc.equal(column, -1), None, column)


def null_if_empty(column: Any) -> Any:
    """Return texts with null in the place of empty ones."""
    return pc.if_else(pc.equal(column, ""), None, column)


def columns_of(table: pa.Table) -> Columns:
    """Return the columns of rows by their names."""
    return {name: table[name] for name in table.column_names}


def few_rows(rows: Sequence[Mapping[str, Any]], layout: Layout) -> pa.Table:
    """Return the objects of few lines as rows; what is text in the table and none in the line stays JSON."""
    columns: dict[str, list[Any]] = {}
    for place, row in enumerate(rows):
        for name, value in row.items():
            if name not in columns:
                columns[name] = [None] * len(rows)
            columns[name][place] = value

    def column(field: pa.Field) -> pa.Array:
        values = columns.get(field.name)
        if values is None:
            return pa.nulls(len(rows), field.type)
        if pa.types.is_string(field.type):
            values = [each if isinstance(each, str | None) else _json(each) for each in values]
        return pa.array(values, field.type)

    return pa.table([column(field) for field in layout.schema], layout.schema)


_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
