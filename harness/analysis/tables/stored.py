"""Reads the facts of one run without an engine."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis.tables.arrow import ARROW_TYPES
from harness.analysis.tables.schemas import TABLES
from harness.store.folder import RunFolder


def fact_table(folder: RunFolder, name: str, columns: Iterable[str] | None = None) -> pa.Table:
    """Return one fact, or some of its columns; empty with the right columns when the run has none.

    A column that the version which made the fact did not have is null.
    """
    path = folder.facts / f"{name}.parquet"
    wanted = list(columns) if columns is not None else [column.name for column in TABLES[name].columns]
    types = {column.name: ARROW_TYPES[column.type] for column in TABLES[name].columns}
    if path.exists():
        dataset = pq.ParquetDataset(path)
        there = dataset.schema.names
        table = dataset.read(columns=[column for column in wanted if column in there])
        for missing in (column for column in wanted if column not in there):
            table = table.append_column(missing, pa.nulls(len(table), types[missing]))
        return table.select(wanted)
    return pa.table({name: pa.array([], types[name]) for name in wanted})
