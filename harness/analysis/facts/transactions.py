"""What became of transactions, by `__transaction_state`, by their coordinators and by the partitions' leaders?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.replication import furthest_replicas
from harness.analysis.facts.clients import of_kind, transaction_outcomes
from harness.analysis.frames import LIFE_KEY, PARTITION_KEY, REPLICA_KEY, conform, in_order, null_if_unknown
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.transactions import (
    CLIENT_TRANSACTIONS,
    MARKER_WRITES,
    STABLE_OFFSETS,
    TRANSACTION_ANSWERS,
    TRANSACTIONAL_COMMITS,
    TRANSACTIONS,
)
from harness.store.history import ABORTED, OpKind

_STATE = ("run_id", "transactional_id", "producer_id", "producer_epoch", "state", "named")


def transactions(transitions: DataFrame, replicas: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a record; what coordinators logged of it is beside it.

    A record that was appended and not stored, as its append was not acknowledged in time, is no transition, unless the
    next coordinator, or the same one after a restart, loads it: it loads the last record of each transactional id.
    """
    lines = state_changes.of("txn_state").select(
        *("run_id", "incarnation", "coordinator_epoch", "time_ns", "log_offset", *_STATE[1:-2]),
        F.col("state_partition").alias("partition"),
        F.col("to_state").alias("state"),
        F.regexp_replace("partitions", r'[\[\]" ]', "").alias("named"),  # the line has a list as text
    )
    stored = lines.where(F.col("log_offset") >= 0).select(
        *("run_id", "partition", F.col("log_offset").alias("offset")),
        *(F.col("time_ns").alias("stored_ns"), F.col("incarnation").alias("stored_by")),
    )
    loads = lines.where(F.col("log_offset") < 0).select(
        *_STATE, F.col("coordinator_epoch").alias("loaded_in"), F.col("time_ns").alias("loaded_ns")
    )
    known = lines.select("run_id").distinct().withColumn("known", F.lit(True))
    place = ["run_id", "partition", "offset"]
    rows = (
        transitions.join(furthest_replicas(replicas), on=list(REPLICA_KEY), how="left_semi")
        .withColumn("named", F.concat_ws(",", "partitions"))
        .withColumn("number", F.row_number().over(in_order(*PARTITION_KEY, by=("offset",))))
        .withColumn("whole", F.col("offset") == F.col("number") - 1)
        .withColumn(
            "next_epoch",
            F.lead("leader_epoch").over(in_order(*PARTITION_KEY, "transactional_id", by=("offset",))),
        )
        .join(stored, on=place, how="left")
        .join(known, on="run_id", how="left")
    )
    loaded = (
        rows.where(F.col("known") & F.col("stored_ns").isNull())
        .join(loads, on=list(_STATE), how="inner")
        .where(F.col("loaded_in") >= F.col("leader_epoch"))  # a coordinator may restart and lead on in its epoch
        .where(F.coalesce(F.col("next_epoch") >= F.col("loaded_in"), F.lit(True)))
        .groupBy(*place)
        .agg(F.min("loaded_ns").alias("loaded_ns"))
    )
    told = F.coalesce("stored_ns", "loaded_ns")
    return conform(
        rows.join(loaded, on=place, how="left")
        .withColumn("told_ns", told)
        .withColumn("counts", F.when(F.col("known"), told.isNotNull())),
        TRANSACTIONS,
    )


def marker_writes(state_changes: StateChanges) -> DataFrame:
    """One row a marker that a leader wrote."""
    return conform(state_changes.of("txn_marker").where(F.col("role") == "leader"), MARKER_WRITES)


def stable_offsets(state_changes: StateChanges) -> DataFrame:
    """One row a change of a last stable offset."""
    return conform(state_changes.of("lso"), STABLE_OFFSETS)


def transaction_answers(state_changes: StateChanges) -> DataFrame:
    """One row an answer to a producer."""
    return conform(state_changes.of("txn_response"), TRANSACTION_ANSWERS)


def transactional_commits(state_changes: StateChanges) -> DataFrame:
    """One row an offset that a transaction commits, and the generation of its group when that was decided."""
    columns = (*LIFE_KEY, "group", "coordinator_epoch", F.col("seq").alias("decided_seq"))
    states = state_changes.of("group_state").select(*columns, F.col("generation").alias("of"), F.lit(1).alias("turn"))
    commits = state_changes.of("txn_offset_commit").withColumn("turn", F.lit(0))
    before = in_order(*LIFE_KEY, "group", "coordinator_epoch", by=("decided_seq", "turn"))
    last = F.last("of", ignorenulls=True).over(before)
    rows = commits.unionByName(states, allowMissingColumns=True).withColumn("group_generation", last)
    return conform(rows.where(F.col("turn") == 0), TRANSACTIONAL_COMMITS)


def client_transactions(operations: DataFrame) -> DataFrame:
    """One row a transaction that a client began."""
    begin, commit, abort, offsets = (
        *(OpKind.BEGIN_TRANSACTION, OpKind.COMMIT_TRANSACTION, OpKind.ABORT_TRANSACTION),
        OpKind.SEND_OFFSETS,
    )
    key = ("run_id", "process", "transaction")
    rows = (
        of_kind(operations, begin, commit, abort, offsets)
        .withColumn("transaction", F.coalesce(null_if_unknown("transaction"), "index"))
        .groupBy(*key)
        .agg(
            F.max("transactional_id").alias("transactional_id"),
            F.min(_of(begin, "invoke_ns")).alias("begun_ns"),
            F.min(_of(commit, "invoke_ns")).alias("commit_ns"),
            F.min(_of(abort, "invoke_ns")).alias("abort_ns"),
            F.max(F.coalesce(_of(commit, "complete_ns"), _of(abort, "complete_ns"))).alias("ended_ns"),
            F.max(_of(offsets, "group")).alias("group"),
        )
        .join(transaction_outcomes(operations), on=list(key), how="left")
        .withColumn("outcome", F.coalesce("transaction_outcome", F.lit(ABORTED)))
    )
    return conform(rows, CLIENT_TRANSACTIONS)


def _of(kind: OpKind, column: str) -> Column:
    return F.when(F.col("kind") == kind.value, F.col(column))
