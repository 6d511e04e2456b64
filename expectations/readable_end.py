"""The highest offset that a committing process could have read, which no column of the fact has."""

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from expectations.tables import stored_table
from harness.analysis.tables.protocol import LEADER_ISRS
from harness.analysis.tables.schemas import POLLS
from harness.store.folder import RunFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READABLE_END = "readable_end"
"""The highest high watermark that a leader of the partition had; null for a process that read nothing of it."""

_PARTITION = ["run_id", "topic", "partition"]
_READER = [*_PARTITION, "process"]


def pandas_with_readable_end(offsets: pd.DataFrame, folder: RunFolder) -> pd.DataFrame:
    """Return a pandas frame of committed offsets with the column `readable_end`."""
    return offsets.merge(_readable_ends(folder), on=_READER, how="left")


def spark_with_readable_end(offsets: "DataFrame", folder: RunFolder) -> "DataFrame":
    """Return a Spark frame of committed offsets with the column `readable_end`."""
    rows = pa.Table.from_pandas(_readable_ends(folder), preserve_index=False)
    return offsets.join(offsets.sparkSession.createDataFrame(rows), on=_READER, how="left")


def _readable_ends(folder: RunFolder) -> pd.DataFrame:
    """One row a process and partition that it read: run, topic, partition, process and `readable_end`."""
    leaders, polls = stored_table(folder, LEADER_ISRS.name), stored_table(folder, POLLS.name)
    if leaders is None or polls is None:
        return pd.DataFrame({name: [] for name in [*_READER, READABLE_END]}).astype(
            {"partition": "Int32", READABLE_END: "Int64"}
        )
    watermarks = leaders.in_pandas([*_PARTITION, "high_watermark"]).rename(columns={"high_watermark": READABLE_END})
    highest = watermarks.groupby(_PARTITION, as_index=False)[READABLE_END].max()
    return polls.distinct(_READER).merge(highest, on=_PARTITION)
