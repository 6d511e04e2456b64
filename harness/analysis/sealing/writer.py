"""How are typed tables written as Parquet?"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.typed import TYPED

Write = Callable[[str, Mapping[str, Any]], None]
"""Appends columns to the table of a name."""


def path_of(root: Path, name: str) -> Path:
    """Return where a table is."""
    return root / f"{name}.parquet"


class Writer:
    """Appends rows to the tables of one kind."""

    def __init__(self, run_id: str, kind: str, root: Path) -> None:
        self._run_id = run_id
        self._stack = ExitStack()
        self._files = {
            name: self._stack.enter_context(_parquet(path_of(root, name), to_arrow_schema(struct)))
            for name, struct in TYPED[kind].items()
        }

    def __enter__(self) -> Write:
        return self._write

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _write(self, name: str, columns: Mapping[str, Any]) -> None:
        """Append columns, which may be more than the table has; a value that does not fit raises ArrowInvalid."""
        file = self._files[name]
        rows = len(columns[file.schema.names[1]])
        every = {**columns, "run_id": pa.repeat(self._run_id, rows)}
        file.write_table(pa.table([_cast(every[field.name], field.type) for field in file.schema], file.schema))


def _parquet(path: Path, schema: pa.Schema) -> parquet.ParquetWriter:
    """Return a writer of a table: text by dictionaries, numbers by their differences."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    differences = {field.name: "DELTA_BINARY_PACKED" for field in schema if pa.types.is_integer(field.type)}
    return parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=texts, column_encoding=differences)


def _cast(column: Any, type_: pa.DataType) -> Any:
    return column if column.type == type_ else column.cast(type_)
