"""The tables of a run that suites are about: a small one is read by pandas, a large one stays in Spark."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
from pyspark.sql import DataFrame, SparkSession

from expectations.suites import FINDINGS
from harness.analysis.facts.build import fact_path
from harness.analysis.schemas import TABLES
from harness.contracts.checks import FINDING_COLUMNS
from harness.store.folder import RunFolder

SMALL_ROWS = 500_000
"""As many rows are read into this process's memory, at about 200 bytes a row; what has more stays in Spark."""

NULLABLE = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
"""A number beside a null would become a float otherwise, and lose its last digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One Parquet folder of a run."""

    path: Path
    columns: tuple[tuple[str, str], ...]
    """Names and Spark types."""
    number: int
    """Rows."""

    @property
    def is_small(self) -> bool:
        """Whether this process may hold it."""
        return self.number <= SMALL_ROWS

    def in_pandas(self, columns: list[str]) -> pd.DataFrame:
        """Return some columns; one that was not written yet, in the time of an older schema, holds nulls."""
        rows = _dataset(self.path)
        table = rows.to_table([name for name in columns if name in rows.schema.names])
        for name in columns:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(len(table)))
        return table.to_pandas(types_mapper=NULLABLE.get)

    def distinct(self, columns: list[str]) -> pd.DataFrame:
        """Return the different rows of some columns, of a table of any size; there must be few of them."""
        distinct = pa.schema([_dataset(self.path).schema.field(name) for name in columns]).empty_table()
        for batch in _dataset(self.path).to_batches(columns=columns):
            both = pa.concat_tables([distinct, pa.Table.from_batches([batch]).select(columns)])
            distinct = both.group_by(columns).aggregate([])
        return distinct.to_pandas(types_mapper=NULLABLE.get)

    def in_spark(self, spark: SparkSession, columns: list[str]) -> DataFrame:
        """Return the same as a Spark frame."""
        ddl = ", ".join(f"`{name}` {type_}" for name, type_ in self.columns)
        return spark.read.schema(ddl).parquet(str(self.path)).select(*columns)


def table_of(folder: RunFolder, name: str) -> Table | None:
    """Return a fact or the findings; None where nothing was written."""
    if name == FINDINGS:
        path, columns = folder.findings, FINDING_COLUMNS
    else:
        path = fact_path(folder.facts, name)
        columns = tuple((column.name, column.type) for column in TABLES[name].columns)
    if not path.is_dir():
        return None
    return Table(path=path, columns=columns, number=_dataset(path).count_rows())


def _dataset(path: Path) -> pads.Dataset:
    return pads.dataset(path, format="parquet", partitioning="hive")
