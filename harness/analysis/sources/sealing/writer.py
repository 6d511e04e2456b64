"""How are typed tables written, as Parquet or as streams of Arrow?"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.sources.typed import TYPED

Write = Callable[[str, Mapping[str, Any]], None]
"""Appends columns to the table of a name."""
Opened = Callable[[str, pa.Schema], Any]
"""Begins the table of a name: returns what takes tables of Arrow, and ends it when it is left."""


def path_of(root: Path, name: str) -> Path:
    """Return where a table is."""
    return root / f"{name}.parquet"


class Writer:
    """Appends rows to the tables of one kind."""

    def __init__(self, run_id: str, kind: str, opened: Opened) -> None:
        self._run_id = run_id
        self._stack = ExitStack()
        self._schemas = _schemas(kind)
        self._tables = {name: self._stack.enter_context(opened(name, each)) for name, each in self._schemas.items()}

    def __enter__(self) -> Write:
        return self._write

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _write(self, name: str, columns: Mapping[str, Any]) -> None:
        """Append columns, which may be more than the table has; a value that does not fit raises ArrowInvalid."""
        schema = self._schemas[name]
        rows = len(columns[schema.names[1]])
        every = {**columns, "run_id": pa.repeat(self._run_id, rows)}
        self._tables[name].write_table(pa.table([_cast(every[field.name], field.type) for field in schema], schema))


@cache
def _schemas(kind: str) -> Mapping[str, pa.Schema]:
    """Return the columns of the tables of a kind."""
    return {name: to_arrow_schema(struct) for name, struct in TYPED[kind].items()}


def as_files(root: Path) -> Opened:
    """Let each table become a file of a folder."""
    return partial(_parquet, root)


def _parquet(root: Path, name: str, schema: pa.Schema) -> parquet.ParquetWriter:
    """Return a writer of a table: text by dictionaries, numbers by their differences."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    differences = {field.name: "DELTA_BINARY_PACKED" for field in schema if pa.types.is_integer(field.type)}
    return parquet.ParquetWriter(
        path_of(root, name), schema, compression="zstd", use_dictionary=texts, column_encoding=differences
    )


def _cast(column: Any, type_: pa.DataType) -> Any:
    return column if column.type == type_ else column.cast(type_)
