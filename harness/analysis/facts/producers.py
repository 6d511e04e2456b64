"""Which batches did a leader refuse for their numbers although it had written the same ones, by its own lines?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import REPLICA_KEY, conform
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import REFUSED_RETRIES

OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
_BY_NUMBERS = (str(OUT_OF_ORDER_SEQUENCE_NUMBER), str(INVALID_PRODUCER_EPOCH))
_PRODUCER = ("producer_id", "producer_epoch")


def refused_retries(state_changes: StateChanges) -> DataFrame:
    """One row a refused batch and place at which its leader had written the same one, and not forgotten the producer.

    A broker's lines are in order by its monotonic clock, over all its lives; refusals are few, and most of batches that
    were never written.
    """
    appends = state_changes.of("append").where(F.col("producer_id") >= 0)
    retries = (
        state_changes.of("batch_refused")
        .where(F.col("error").isin(*_BY_NUMBERS))
        .withColumn("refused_at", _instant())
        .join(
            appends.select(
                *REPLICA_KEY,
                *_PRODUCER,
                "base_sequence",
                F.col("base_offset").alias("offset"),
                F.col("last_offset").alias("end"),
                _instant().alias("written_at"),
            ),
            on=[*REPLICA_KEY, *_PRODUCER, "base_sequence"],
            how="inner",
        )
        .where(F.col("written_at") < F.col("refused_at"))
        .where(F.col("end") - F.col("offset") == F.col("last_sequence") - F.col("base_sequence"))
        .drop("last_offset")
        .withColumnRenamed("end", "last_offset")
    )
    forgotten = state_changes.of("producers_expired").select(
        *REPLICA_KEY, F.explode("producer_ids").alias("producer_id"), _instant().alias("forgotten_at")
    )
    in_between = F.col("forgotten_at").between(F.col("written_at"), F.col("refused_at"))
    since = (
        retries.join(forgotten, on=[*REPLICA_KEY, "producer_id"], how="inner")
        .where(in_between)
        .select(*REPLICA_KEY, "incarnation", "seq", "written_at")
        .distinct()
    )
    retries = retries.join(since, on=[*REPLICA_KEY, "incarnation", "seq", "written_at"], how="left_anti")
    return conform(_with_lead(_with_later(retries, state_changes), state_changes), REFUSED_RETRIES)


def _with_later(retries: DataFrame, state_changes: StateChanges) -> DataFrame:
    """Add what the broker wrote to the same log in between."""
    appends = state_changes.of("append").select(
        *REPLICA_KEY,
        F.col("base_offset").alias("later_offset"),
        F.col("producer_id").alias("later_id"),
        F.col("producer_epoch").alias("later_producer_epoch"),
        _instant().alias("later_at"),
    )
    between = (F.col("later_at") > F.col("written_at")) & (F.col("later_at") < F.col("refused_at"))
    own, behind = F.col("later_id") == F.col("producer_id"), F.col("later_offset") > F.col("last_offset")
    same_epoch = F.col("later_producer_epoch") == F.col("producer_epoch")
    later = (
        retries.select(
            *REPLICA_KEY, "incarnation", "seq", "offset", "last_offset", *_PRODUCER, "written_at", "refused_at"
        )
        .join(appends, on=list(REPLICA_KEY), how="inner")
        .where(between)
        .groupBy(*REPLICA_KEY, "incarnation", "seq", "written_at")
        .agg(
            F.max(~behind).alias("overwritten"),
            F.count_distinct(F.when(own & same_epoch & behind, F.col("later_offset"))).alias("later_batches"),
            F.max(own & (F.col("later_producer_epoch") > F.col("producer_epoch"))).alias("later_epoch"),
        )
    )
    return (
        retries.join(later, on=[*REPLICA_KEY, "incarnation", "seq", "written_at"], how="left")
        .withColumn("overwritten", F.coalesce("overwritten", F.lit(False)))
        .withColumn("later_batches", F.coalesce("later_batches", F.lit(0)))
        .withColumn("later_epoch", F.coalesce("later_epoch", F.lit(False)))
    )


def _with_lead(retries: DataFrame, state_changes: StateChanges) -> DataFrame:
    """Add where the log ended when the leader that refused took the lead, and whether the batch was written since."""
    leads = state_changes.of("become_leader").select(
        *REPLICA_KEY, "leader_epoch", F.col("log_end_offset").alias("leader_end_offset"), _instant().alias("led_at")
    )
    took = (
        retries.select(*REPLICA_KEY, "incarnation", "seq", "written_at", "leader_epoch", "refused_at")
        .join(leads, on=[*REPLICA_KEY, "leader_epoch"], how="inner")
        .where(F.col("led_at") < F.col("refused_at"))
        .groupBy(*REPLICA_KEY, "incarnation", "seq", "written_at")
        .agg(F.max(F.struct("led_at", "leader_end_offset")).alias("took"))
    )
    return (
        retries.drop("log_end_offset")
        .join(took, on=[*REPLICA_KEY, "incarnation", "seq", "written_at"], how="left")
        .withColumn("leader_end_offset", F.col("took.leader_end_offset"))
        .withColumn("written_since", F.col("written_at") > F.col("took.led_at"))
    )


def _instant() -> Column:
    return F.struct("time_ns", "seq")
