"""The lines of the brokers' logs by the kind of their event, as facts take them.

Each scan of a table in memory copies every column of every row. The kinds that come with every record have tables of
their own, those about groups share one, those about transactions another, and each has their columns alone, so that
reading a rare kind does not go through them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.frames import typed
from harness.analysis.sources.lineage import FACT_EVENTS
from harness.analysis.sources.lines import RUN_ID, STATE_CHANGE, struct_of
from harness.events import (
    COMMON,
    Append,
    BrokerRegistered,
    CoordinatorLoad,
    CoordinatorUnload,
    Event,
    FetchResponse,
    GroupEvent,
    HighWatermark,
    LastStableOffset,
    LogDirectoryFailure,
    OffsetCommit,
    OffsetRetired,
    ProduceResponse,
    TransactionalOffsetCommit,
    TransactionEvent,
    TransactionMarker,
)

FREQUENT = (Append, FetchResponse, HighWatermark, ProduceResponse)
GROUPS = "groups"
_OF_GROUPS = (GroupEvent, OffsetCommit, OffsetRetired, CoordinatorLoad, CoordinatorUnload)
TRANSACTIONS = "transaction_lines"
_OF_TRANSACTIONS = (LastStableOffset, TransactionEvent, TransactionMarker, TransactionalOffsetCommit)
RARE = "rare"
"""All other kinds that facts are made of."""
LIVES = "lives"
NAMES = {"inc": "incarnation", "mono": "time_ns"}
"""Names that facts have for two of the common fields."""


@dataclass(frozen=True, slots=True)
class StateChanges:
    """The lines, in tables by the kind of their event."""

    tables: Mapping[str, DataFrame]

    def of(self, *kinds: str) -> DataFrame:
        """Return the lines of some kinds: of a frequent one, or of rare ones."""
        (name,) = {_TABLES[kind] for kind in kinds}
        return self.tables[name].where(F.col("ev").isin(*kinds))


def by_kind(state_changes: DataFrame) -> dict[str, DataFrame]:
    """Return the tables that `STATE_CHANGE_TABLES` states, of all lines."""
    lines = state_changes.withColumnsRenamed(NAMES)
    tables = {
        name: typed(lines.where(F.col("ev").isin([kind.ev for kind in kinds])), STATE_CHANGE_TABLES[name])
        for name, kinds in KINDS_OF.items()
    }
    return tables | {LIVES: _lives(lines)}


def _lives(lines: DataFrame) -> DataFrame:
    """One row a life of a broker's process: how long it lasted, and what became of its data directory."""
    registered = F.when(F.col("ev") == BrokerRegistered.ev, F.col("time_ns"))
    return typed(
        lines.groupBy("run_id", "broker", "incarnation").agg(
            F.min(registered).alias("began_ns"),
            F.max("time_ns").alias("lived_ns"),
            F.bool_or(F.col("ev") == LogDirectoryFailure.ev).alias("disk_failed"),
        ),
        STATE_CHANGE_TABLES[LIVES],
    )


def _table_of(kind: type[Event]) -> str:
    if kind in FREQUENT:
        return kind.ev
    if issubclass(kind, _OF_TRANSACTIONS):
        return TRANSACTIONS
    return GROUPS if issubclass(kind, _OF_GROUPS) else RARE


def _columns(kinds: Sequence[type[Event]]) -> T.StructType:
    """Return the columns of a table: those of one kind have its own types, those of several as lines have them."""
    types = {field.name: field.dataType for struct in (STATE_CHANGE, *_own(kinds)) for field in struct}
    names = sorted({name for name, _ in COMMON}.union(field.name for kind in kinds for field in fields(kind)))
    return T.StructType([RUN_ID, *(T.StructField(NAMES.get(name, name), types[name]) for name in names)])


def _own(kinds: Sequence[type[Event]]) -> list[T.StructType]:
    return [struct_of(kinds[0])] if len(kinds) == 1 else []


_TABLES = {kind.ev: _table_of(kind) for kind in FACT_EVENTS}
"""Names of tables, by the kind of event."""
KINDS_OF = {
    name: [kind for kind in FACT_EVENTS if _TABLES[kind.ev] == name] for name in dict.fromkeys(_TABLES.values())
}
STATE_CHANGE_TABLES = {name: _columns(kinds) for name, kinds in KINDS_OF.items()} | {
    LIVES: T.StructType(
        [
            RUN_ID,
            T.StructField("broker", T.LongType()),
            T.StructField("incarnation", T.StringType()),
            T.StructField("began_ns", T.LongType()),
            T.StructField("lived_ns", T.LongType()),
            T.StructField("disk_failed", T.BooleanType()),
        ]
    )
}
"""Columns of the tables that are made of the brokers' lines."""
