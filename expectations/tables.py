"""Where are the tables that suites judge, and does this process read one, or Spark?"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
from pyspark.sql import DataFrame, SparkSession

from harness.analysis.facts.build import fact_path
from harness.analysis.sources.lineage import FINDINGS
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import FINDING_COLUMNS
from harness.store.folder import RunFolder

SMALL_ROWS = 500_000
"""As many rows are read into this process's memory, at about 200 bytes a row; what has more stays in Spark."""
HELD_ROWS = 10 * SMALL_ROWS
"""Without a JVM nothing else can hold them: a gigabyte, beside what Great Expectations makes of it."""

NULLABLE = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
"""A number beside a null would become a float otherwise, and lose its last digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """One Parquet folder of a run."""

    path: Path
    columns: tuple[tuple[str, str], ...]
    """Names and Spark types."""
    row_count: int

    @property
    def is_small(self) -> bool:
        """Whether this process may hold it."""
        return self.row_count <= SMALL_ROWS

    @property
    def can_be_held(self) -> bool:
        """Whether this process can hold it where nothing else does."""
        return self.row_count <= HELD_ROWS

    def in_pandas(self, columns: list[str]) -> pd.DataFrame:
        """Return some columns; one that the table, written by an older schema, does not have holds nulls."""
        rows = _dataset(self.path)
        table = rows.to_table([name for name in columns if name in rows.schema.names])
        for name in columns:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(len(table)))
        return table.to_pandas(types_mapper=NULLABLE.get)

    def distinct(self, columns: list[str]) -> pd.DataFrame:
        """Return the distinct rows of some columns, of which there must be few; the table may be of any size."""
        rows = pa.schema([_dataset(self.path).schema.field(name) for name in columns]).empty_table()
        for batch in _dataset(self.path).to_batches(columns=columns):
            both = pa.concat_tables([rows, pa.Table.from_batches([batch]).select(columns)])
            rows = both.group_by(columns).aggregate([])
        return rows.to_pandas(types_mapper=NULLABLE.get)

    def in_spark(self, spark: SparkSession, columns: list[str]) -> DataFrame:
        """Return the same as a Spark frame."""
        ddl = ", ".join(f"`{name}` {type_}" for name, type_ in self.columns)
        return spark.read.schema(ddl).parquet(str(self.path)).select(*columns)


def stored_table(folder: RunFolder, name: str) -> StoredTable | None:
    """Return the table of a fact or of the findings; None where nothing was written."""
    if name == FINDINGS:
        path, columns = folder.findings, FINDING_COLUMNS
    else:
        path = fact_path(folder.facts, name)
        columns = tuple((column.name, column.type) for column in TABLES[name].columns)
    if not path.is_dir():
        return None
    return StoredTable(path=path, columns=columns, row_count=_dataset(path).count_rows())


def _dataset(path: Path) -> pads.Dataset:
    return pads.dataset(path, format="parquet", partitioning="hive")
