"""How far who committed an offset may have read: what no column of the fact says, but other tables of the run do."""

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from expectations.tables import table_of
from harness.analysis.protocol_tables import LEADER_ISRS
from harness.analysis.schemas import POLLS
from harness.store.folder import RunFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REACH = "readable_end"
"""The highest high watermark that a leader of the partition had; null for a process that read nothing of it."""

_PARTITION = ["run_id", "topic", "partition"]
_READER = [*_PARTITION, "process"]


def pandas_with_reach(offsets: pd.DataFrame, folder: RunFolder) -> pd.DataFrame:
    """Add the column to a pandas frame of committed offsets."""
    return offsets.merge(_reach(folder), on=_READER, how="left")


def spark_with_reach(offsets: "DataFrame", folder: RunFolder) -> "DataFrame":
    """Add the column to a Spark frame of committed offsets."""
    rows = pa.Table.from_pandas(_reach(folder), preserve_index=False)
    return offsets.join(offsets.sparkSession.createDataFrame(rows), on=_READER, how="left")


def _reach(folder: RunFolder) -> pd.DataFrame:
    """Return one row a process and partition that it read; a leader's watermarks are one row a leader epoch."""
    leaders, polls = table_of(folder, LEADER_ISRS.name), table_of(folder, POLLS.name)
    if leaders is None or polls is None:
        return pd.DataFrame({name: [] for name in [*_READER, REACH]}).astype({"partition": "Int32", REACH: "Int64"})
    watermarks = leaders.in_pandas([*_PARTITION, "high_watermark"]).rename(columns={"high_watermark": REACH})
    highest = watermarks.groupby(_PARTITION, as_index=False)[REACH].max()
    return polls.distinct(_READER).merge(highest, on=_PARTITION)
