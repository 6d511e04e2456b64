"""By which live brokers did controllers go, and what had they read of the registrations by then?

A controller's log is in the order of its decisions, but for requests that had to wait in their channel. So no clock is
needed to tell what a controller knew when it decided.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import LIFE_KEY, conform, in_order
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import BELIEFS, CONTROLLER_PASSES
from harness.events import (
    ControllerElected,
    ControllerEvent,
    ControllerReady,
    ControlSend,
    Election,
    RegistrationsRead,
)

_BROKER_CHANGE = "BrokerChange"
_NS_IN_A_MS = 1_000_000
_READ, _ACTED, _ENDED = 0, 1, 2
"""Lines of one instant in the order in which they count."""
_COLUMNS = {
    "time_ns": "bigint",
    "acted": "string",
    "controller_epoch": "int",
    "topic": "string",
    "partition": "int",
    "alive": "array<int>",
    "leaving": "array<int>",
    "registrations": "array<array<bigint>>",
    "brokers": "array<int>",
    "czxids": "array<bigint>",
}
"""Of the lines in the turn of decisions."""


def controller_passes(state_changes: StateChanges) -> DataFrame:
    """One row a failover or BrokerChange that a controller carried out to its end."""
    failover = F.col("ev") == ControllerReady.ev
    changed = (F.col("name") == _BROKER_CHANGE) & (F.col("outcome") == "ok")
    reads = F.col("ev") == RegistrationsRead.ev
    read = F.when(reads, F.struct("seq", "time_ns", "controller_epoch", "registrations"))
    elected = F.col("ev") == ControllerElected.ev
    began_ns = F.col("time_ns") - _nanoseconds("duration_ms")
    so_far = in_order(*LIFE_KEY, by=("seq",))
    return conform(
        state_changes.of(ControllerReady.ev, ControllerEvent.ev, RegistrationsRead.ev, ControllerElected.ev)
        .where(failover | changed | reads | elected)
        .withColumn("read", F.last(read, ignorenulls=True).over(so_far))
        .withColumn("elected_ns", F.last(F.when(elected, F.col("time_ns")), ignorenulls=True).over(so_far))
        .where(~reads & ~elected & (failover | (F.col("read.time_ns") >= began_ns)))
        .withColumn("name", F.when(failover, "failover").otherwise(F.col("name")))
        .withColumn("began_ns", F.when(failover, F.coalesce("elected_ns", F.col("read.time_ns"))).otherwise(began_ns))
        .withColumn("controller_epoch", F.col("read.controller_epoch"))
        .withColumn("brokers", _brokers("read.registrations"))
        .withColumn("czxids", _czxids("read.registrations")),
        CONTROLLER_PASSES,
    )


def beliefs(passes: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row an election that gave a leader, and one an UpdateMetadata that a controller sent.

    `passes` is the fact `controller_passes`. While a controller acts on a read of the registrations, it may use that
    read or the one before. If it has read them more often since, it may have used any part, and the row is left out.
    """
    in_turn_of_decisions = in_order(*LIFE_KEY, by=("made_ns", "rank", "seq"))
    reads = _lines(
        state_changes.of(RegistrationsRead.ev).withColumn("made_ns", F.col("time_ns")), _READ, "registrations"
    )
    ended = _lines(passes.withColumn("made_ns", F.col("time_ns")), _ENDED, "brokers", "czxids")
    lines = _acted(state_changes).unionByName(reads).unionByName(ended)
    is_read = F.col("rank") == _READ
    so_far = {
        "read": F.last("registrations", ignorenulls=True).over(in_turn_of_decisions),
        "ended_brokers": F.last("brokers", ignorenulls=True).over(in_turn_of_decisions),
        "ended_czxids": F.last("czxids", ignorenulls=True).over(in_turn_of_decisions),
        "read_ns": F.max(F.when(is_read, F.col("made_ns"))).over(in_turn_of_decisions),
        "reads": F.count(F.when(is_read, 1)).over(in_turn_of_decisions),
    }
    counted = lines.withColumns(so_far)
    reads_ended = F.max(F.when(F.col("rank") == _ENDED, F.col("reads"))).over(in_turn_of_decisions)
    before = F.coalesce("ended_czxids", _czxids("read"))
    in_both = F.filter("read", lambda pair: F.array_contains(F.col("before"), F.element_at(pair, 2)))
    rows = (
        counted.withColumn("reads_ended", F.coalesce(reads_ended, F.lit(0)))
        .where((F.col("rank") == _ACTED) & F.col("read").isNotNull())
        .where(F.col("reads") - F.col("reads_ended") <= 1)
        .withColumn("before", before)
        .withColumn("in_both", in_both)
        .withColumn("certain", _brokers("in_both"))
        .withColumn("czxids", _czxids("in_both"))
        .withColumn("possible", F.array_union(_brokers("read"), F.coalesce("ended_brokers", _brokers("read"))))
    )
    return conform(rows, BELIEFS)


def _brokers(registrations: str) -> Column:
    return F.transform(registrations, lambda pair: F.element_at(pair, 1).cast("int"))


def _czxids(registrations: str) -> Column:
    return F.transform(registrations, lambda pair: F.element_at(pair, 2))


def _acted(state_changes: StateChanges) -> DataFrame:
    elections = (
        state_changes.of(Election.ev)
        .where(F.col("result").isNotNull())
        .withColumn("acted", F.lit("election"))
        .withColumn("alive", F.col("online"))
        .withColumn("leaving", F.col("shutting_down"))
        .withColumn("made_ns", F.col("time_ns"))
    )
    requests = (
        state_changes.of(ControlSend.ev)
        .where(F.col("live_brokers").isNotNull())
        .withColumn("acted", F.lit("metadata"))
        .withColumn("alive", F.col("live_brokers"))
        .withColumn("made_ns", F.col("time_ns") - _nanoseconds("queued_ms"))
    )
    told = ("time_ns", "acted", "controller_epoch", "alive")
    return _lines(elections, _ACTED, *told, "topic", "partition", "leaving").unionByName(
        _lines(requests, _ACTED, *told)
    )


def _lines(rows: DataFrame, rank: int, *has: str) -> DataFrame:
    """Return the columns of a line in the turn of decisions; those that are not among `has` are null."""
    columns = (
        (F.col(name) if name in has else F.lit(None)).cast(type_).alias(name) for name, type_ in _COLUMNS.items()
    )
    return rows.select(*LIFE_KEY, "seq", "made_ns", F.lit(rank).alias("rank"), *columns)


def _nanoseconds(milliseconds: str) -> Column:
    return (F.col(milliseconds).cast("double") * _NS_IN_A_MS).cast("bigint")
