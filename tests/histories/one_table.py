"""Recorded histories side by side, as a sweep leaves its schedules."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from harness.sweep.recorded import NUMBER, History


def one_table(histories: Iterable[History], more: Sequence[pa.Table], path: Path) -> None:
    """Write the rows of recorded histories, and then more, as one table; a row's number is its place."""
    rows = [parquet.read_table(history.table) for history in histories] + list(more)
    table = pa.concat_tables(rows, promote_options="permissive")
    numbers = pa.array(range(table.num_rows), pa.int64())
    parquet.write_table(table.set_column(table.schema.get_field_index(NUMBER), NUMBER, numbers), path)
