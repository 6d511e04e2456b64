"""What became of transactions in the logs: what their coordinators decided, and their parts in each partition?

A *part* is what a producer wrote to a partition in a transaction: its batches up to its next marker, which closes it. A
*decision* is a Prepare record. An *instance* is one transaction of a transactional id: its records in
`__transaction_state` from the first Ongoing one to the last before the next one begins.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.allowances import LOSSES_OF_OFFSETS
from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, DUMPS_COMPLETE
from harness.analysis.check_helpers.findings import severity, unclean_elections
from harness.analysis.check_helpers.replication import furthest_replicas
from harness.analysis.frames import PARTITION_KEY, REPLICA_KEY, in_order, made_once
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject

ID_KEY = (*PARTITION_KEY, "transactional_id")
"""Of a transactional id; the partition is that of `__transaction_state`."""
PRODUCER_KEY = (*REPLICA_KEY, "producer_id")
OPEN = "Ongoing"
PREPARED = {"PrepareCommit": "commit", "PrepareAbort": "abort"}
COMPLETED = ("CompleteCommit", "CompleteAbort")
_MARKER = "struct<offset: bigint, result: string, producer_epoch: int, coordinator_epoch: int>"
_BEFORE = ("offset", "leader_epoch", "state", "producer_id", "producer_epoch", "started_ms", "partitions")


def _whole(_: Settings, transactions: DataFrame) -> DataFrame:
    return transactions.groupBy("run_id", F.concat(F.lit("__transaction_state-"), "partition").alias("place")).agg(
        F.count("*").alias("number"), F.count_if(~F.col("whole")).alias("unseen")
    )


TRANSACTIONS_WHOLE = Subject(
    facts=("transactions",),
    pieces=_whole,
    what="transitions of transactional ids",
    unseen="follow records that are gone from the log",
)
"""The log of each coordinator is whole: compaction has removed none of its records."""


class OfTransactions(Check):
    """A check that rests on the logs: on `__transaction_state`, and on the partitions that transactions wrote to."""

    needs: ClassVar[tuple[str, ...]] = ("replicas",)
    reads: ClassVar[tuple[str, ...]] = ("transactions", "markers", "transactional_batches", "leader_epochs")
    about: ClassVar[Subject] = TRANSACTIONS_WHOLE
    assumes: ClassVar[tuple[Assumption, ...]] = (*DUMPS_COMPLETE, BROKERS_WHOLE)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES_OF_OFFSETS
    judges_without: ClassVar[tuple[str, ...]] = ("zookeeper",)

    def judged(self, rows: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """Add `severity`; an allowed loss in any partition may be the cause, as a transaction is in several."""
        unclean = unclean_elections(facts["leader_epochs"], settings).select("run_id").distinct()
        return rows.join(unclean.withColumn("unclean", F.lit(True)), on="run_id", how="left").withColumn(
            "severity", severity(self.excused_by, settings, unclean=F.col("unclean"))
        )


@made_once
def steps(transactions: DataFrame) -> DataFrame:
    """One row a transition with the one `before` it, and the `earlier` one before that, of the same transactional id.

    `doubtful` is whether the one before may be none, as no coordinator logs which records it has stored. A coordinator
    appends such a record as often as its client asks, so the earlier one is that before all repetitions.
    """
    of_id = in_order(*ID_KEY, by=("offset",))
    before = F.struct(*_BEFORE)
    content = F.struct("state", "producer_id", "producer_epoch", F.array_sort("partitions").alias("partitions"))
    is_repeated = content == F.lag(content).over(of_id)
    return (
        transactions.where(F.coalesce("counts", F.lit(True)))
        .withColumn("before", F.lag(before).over(of_id))
        .withColumn("since", F.when(~is_repeated, F.struct("before")))
        .withColumn("since", F.last("since", ignorenulls=True).over(of_id))
        .withColumn("earlier", F.coalesce(F.lag("since.before").over(of_id), F.lag(before, 2).over(of_id)))
        .drop("since")
        .withColumn("doubtful", F.col("counts").isNull())
    )


@made_once
def instances(transactions: DataFrame) -> DataFrame:
    """One row a transaction of a transactional id, in a log from which nothing is missing.

    Columns: `ID_KEY`, the `instance`'s number, `producer_id`, the `producer_epoch` in which it wrote, all `partitions`
    it ever named, and its last decision: `result`, `decided_epoch`, `decided_offset`, `decided_ns`, and
    `decided_partitions`, which lack those of an Ongoing record that was not stored; and whether it is `complete`.
    """
    is_open, prepared = F.col("state") == OPEN, F.col("state").isin(*PREPARED)
    of_id = in_order(*ID_KEY, by=("offset",))
    begins = is_open & ~F.coalesce(F.lag("state").over(of_id) == OPEN, F.lit(False))
    numbered = transactions.withColumn("begins", begins).withColumn(
        "instance", F.sum(F.col("begins").cast("int")).over(of_id)
    )
    decision = F.when(prepared, F.struct("offset", "state", "producer_epoch", "partitions", "told_ns"))
    return (
        numbered.where(F.col("instance") > 0)
        .groupBy(*ID_KEY, "instance")
        .agg(
            F.min_by("producer_id", "offset").alias("producer_id"),
            F.min_by("producer_epoch", "offset").alias("producer_epoch"),
            F.array_distinct(F.flatten(F.collect_list("partitions"))).alias("partitions"),
            F.max(decision).alias("decision"),
            F.bool_or(F.col("state").isin(*COMPLETED)).alias("complete"),
        )
        .select(
            *ID_KEY,
            "instance",
            "producer_id",
            "producer_epoch",
            "partitions",
            _result("decision.state").alias("result"),
            F.col("decision.producer_epoch").alias("decided_epoch"),
            F.col("decision.offset").alias("decided_offset"),
            F.col("decision.partitions").alias("decided_partitions"),
            F.col("decision.told_ns").alias("decided_ns"),
            "complete",
        )
    )


def decisions(transactions: DataFrame) -> DataFrame:
    """One row a Prepare record, with its `result`."""
    return transactions.where(F.col("state").isin(*PREPARED)).withColumn("result", _result("state"))


def _result(state: str) -> Column:
    return F.when(F.col(state) == "PrepareCommit", "commit").when(F.col(state) == "PrepareAbort", "abort")


def by_partition(rows: DataFrame) -> DataFrame:
    """Return a row for each of a row's `partitions`, with its `topic` and `partition`."""
    return (
        rows.drop("topic", "partition")
        .withColumn("named", F.explode("partitions"))
        .withColumn("topic", F.regexp_extract("named", "^(.*)-[0-9]+$", 1))
        .withColumn("partition", F.regexp_extract("named", "([0-9]+)$", 1).cast("int"))
        .drop("named")
    )


def in_whole_logs(rows: DataFrame, transactions: DataFrame) -> DataFrame:
    """Leave out the runs in which a record of `__transaction_state` is missing: what is not there proves nothing."""
    gone = transactions.where(~F.col("whole")).select("run_id", F.col("run_id").alias("gone")).distinct()
    # An anti join makes an invalid plan of Spark's optimizer here (PushDownLeftSemiAntiJoin).
    return rows.join(gone, on="run_id", how="left").where(F.col("gone").isNull()).drop("gone")


@made_once
def parts(batches: DataFrame, markers: DataFrame) -> DataFrame:
    """One row a part of a transaction in one replica's log.

    Columns: `PRODUCER_KEY`, `producer_epoch` of its last batch, `first_offset`, `last_offset`, the `marker` that closes
    it (`offset`, `result`, `producer_epoch`, `coordinator_epoch`), null while it is open.
    """
    marker = F.struct("offset", "result", "producer_epoch", "coordinator_epoch")
    written = batches.select(
        *PRODUCER_KEY,
        F.col("first_offset").alias("offset"),
        "producer_epoch",
        "first_offset",
        "last_offset",
        F.lit(None).cast(_MARKER).alias("marker"),
    )
    closing = markers.select(
        *PRODUCER_KEY,
        "offset",
        F.lit(None).cast("int").alias("producer_epoch"),
        F.lit(None).cast("bigint").alias("first_offset"),
        F.lit(None).cast("bigint").alias("last_offset"),
        marker.alias("marker"),
    )
    before = in_order(*PRODUCER_KEY, by=("offset",)).rowsBetween(Window.unboundedPreceding, -1)
    return (
        written.unionByName(closing)
        .withColumn("number", F.count("marker").over(before))
        .groupBy(*PRODUCER_KEY, "number")
        .agg(
            F.max("producer_epoch").alias("producer_epoch"),
            F.min("first_offset").alias("first_offset"),
            F.max("last_offset").alias("last_offset"),
            F.max("marker").alias("marker"),
        )
        .where(F.col("first_offset").isNotNull())
    )


def on_furthest(rows: DataFrame, replicas: DataFrame) -> DataFrame:
    """Return the rows that are about the replica whose log has come furthest."""
    return rows.join(furthest_replicas(replicas), on=list(REPLICA_KEY), how="left_semi")


def thinned_logs(facts: dict[str, DataFrame]) -> DataFrame:
    """One row a replica from whose log something is gone: from its start, or by compaction.

    In a run without markers and transactional batches that is each log that was written to: they may be gone from it.
    """
    return _thinned(facts["replicas"], facts["replica_records"], facts["markers"], facts["transactional_batches"])


@made_once
def _thinned(replicas: DataFrame, records: DataFrame, markers: DataFrame, batches: DataFrame) -> DataFrame:
    # Most runs have no transactions, and their records are not counted; by run alone they must not be shuffled.
    with_transactions = markers.select("run_id").unionByName(batches.select("run_id")).distinct()
    sizes = (
        records.select(*REPLICA_KEY)
        .unionByName(markers.select(*REPLICA_KEY))
        .join(F.broadcast(with_transactions), on="run_id", how="left_semi")
        .groupBy(*REPLICA_KEY)
        .agg(F.count("*").alias("size"))
    )
    is_short = F.coalesce("size", F.lit(0)) < F.col("log_end_offset")
    return (
        replicas.join(sizes, on=list(REPLICA_KEY), how="left")
        .where((F.col("log_start_offset") > 0) | is_short)
        .select(*REPLICA_KEY)
    )


def without_thinned(rows: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
    """Leave out the rows about partitions from whose logs something is gone."""
    return rows.join(thinned_logs(facts).drop("broker"), on=list(PARTITION_KEY), how="left_anti")


def without_deleted(rows: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
    """Leave out the rows about topics that were deleted or are being deleted, also where they were made anew.

    Coordinators skip the partitions of such a topic. Not all of them need be made anew, and a broker that was down
    keeps the old ones.
    """
    gone = facts["topics"].where(~F.col("present") | F.col("deletion_pending")).select("run_id", "topic")
    remade = facts["partition_states"].where(F.col("life") > 1).select("run_id", "topic")
    return rows.join(gone.unionByName(remade), on=["run_id", "topic"], how="left_anti")


def closed(facts: dict[str, DataFrame]) -> DataFrame:
    """One row a part that a marker closes in the log that has come furthest, with the marker's columns."""
    of_all = parts(facts["transactional_batches"], facts["markers"])
    return (
        on_furthest(of_all, facts["replicas"])
        .where(F.col("marker").isNotNull())
        .select(*PRODUCER_KEY, "first_offset", "last_offset", "marker.*")
    )
