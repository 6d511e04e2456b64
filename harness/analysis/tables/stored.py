"""Reads the facts of one run without an engine."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis.tables.arrow import ARROW_TYPES
from harness.analysis.tables.schemas import TABLES
from harness.store.folder import RunFolder


def fact_table(folder: RunFolder, name: str, columns: Iterable[str] | None = None) -> pa.Table:
    """Return one fact, or some of its columns; empty with the right columns when the run has none."""
    path = folder.facts / f"{name}.parquet"
    wanted = list(columns) if columns is not None else [column.name for column in TABLES[name].columns]
    if path.exists():
        return pq.read_table(path, columns=wanted)
    types = {column.name: ARROW_TYPES[column.type] for column in TABLES[name].columns}
    return pa.table({name: pa.array([], types[name]) for name in wanted})
