"""The lines of the brokers' logs by the kind of their event, as facts take them.

Each scan of a table in memory copies every column of every row. The kinds that come with every record have tables of
their own, with their own columns, so that whoever wants a rare kind does not go through them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.origins import FACT_EVENTS
from harness.events import COMMON, Append, FetchResponse, HighWatermark, ProduceResponse

FREQUENT = (Append, FetchResponse, HighWatermark, ProduceResponse)
RARE = "rare"
"""All other kinds that facts are made of."""
_NAMES = {"inc": "incarnation", "mono": "time_ns"}
"""Names that facts have for two of the common fields."""
_OF_ALL = {"run_id", *(_NAMES.get(name, name) for name, _ in COMMON)}


@dataclass(frozen=True, slots=True)
class StateChanges:
    """The lines, in tables by the kind of their event."""

    tables: Mapping[str, DataFrame]

    def of(self, *kinds: str) -> DataFrame:
        """Return the lines of some kinds: of a frequent one, or of rare ones."""
        names = {kind if kind in self.tables else RARE for kind in kinds}
        (name,) = names
        return self.tables[name].where(F.col("ev").isin(*kinds))


def by_kind(state_changes: DataFrame) -> dict[str, DataFrame]:
    """Return the tables that `StateChanges` has, of all lines."""
    lines = state_changes.withColumnsRenamed(_NAMES)
    frequent = {kind.ev: lines.where(F.col("ev") == kind.ev).select(*_columns(kind)) for kind in FREQUENT}
    rare = [kind.ev for kind in FACT_EVENTS if kind not in FREQUENT]
    return frequent | {RARE: lines.where(F.col("ev").isin(rare)).drop("corrupt", "file")}


def _columns(kind: type) -> list[str]:
    return sorted(_OF_ALL | {field.name for field in fields(kind)})
