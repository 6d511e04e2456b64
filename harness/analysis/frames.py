"""Small steps that facts and checks share; each takes and returns a frame or a column."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window, WindowSpec

from harness.analysis.table import Table

PARTITION_KEY = ("run_id", "topic", "partition")


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """Return exactly the table's columns, in its order and with its types; a value that does not fit becomes null.

    What has its type already stays the same column: renamed, Spark would forget that rows are together by it.
    """
    types = dict(frame.dtypes)
    return frame.selectExpr(
        *(
            f"`{column.name}`"
            if types.get(column.name) == column.type
            else f"try_cast(`{column.name}` as {column.type}) `{column.name}`"
            for column in table.columns
        )
    )


def known(name: str, unknown: int = -1) -> Column:
    """Return the column with its stand-in for "not known" as null."""
    return F.nullif(F.col(name), F.lit(unknown)).alias(name)


def in_order(*keys: str, by: tuple[str, ...]) -> WindowSpec:
    """Return a window over rows that share `keys`, in the order of `by`."""
    return Window.partitionBy(*keys).orderBy(*by)
