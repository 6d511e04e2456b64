"""How brokers kept to the protocol, by their own word: decisions, writes, requests, and whom leaders waited for.

What leaders do for every record is gathered by leader epoch, so that it stays small whatever the load was.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.facts.epochs import STATE_PATH
from harness.analysis.frames import conform
from harness.analysis.protocol_tables import (
    ACKNOWLEDGEMENTS,
    CONSUMER_FETCHES,
    CONTROL_REQUESTS,
    ELECTIONS,
    ISR_PROPOSALS,
    LEADER_ISRS,
    STATE_WRITES,
)

_DECIDED = "leader int, leader_epoch int, isr array<int>"
_CONTROLLED = "array<struct<topic: string, partition: int, leader_epoch: int, verdict: string>>"


def elections(state_changes: DataFrame) -> DataFrame:
    """One row a decision about a partition's leader."""
    before = [F.col(f"previous.{name}").alias(f"previous_{name}") for name in ("leader", "leader_epoch", "isr")]
    return conform(
        _said(state_changes, "election")
        .withColumn("decided", F.from_json("result", _DECIDED))
        .drop("leader", "leader_epoch", "isr", "previous_leader_epoch")
        .select("*", "decided.*", *before),
        ELECTIONS,
    )


def state_writes(state_changes: DataFrame) -> DataFrame:
    """One row a write of a partition's state znode, as it ended for the broker that wrote."""
    return conform(
        _said(state_changes, "zk_write")
        .where(F.col("path").rlike(STATE_PATH))
        .withColumn("topic", F.regexp_extract("path", STATE_PATH, 1))
        .withColumn("partition", F.regexp_extract("path", STATE_PATH, 2))
        .withColumn("zk_version", F.col("new_version"))
        .withColumnRenamed("by", "writer"),
        STATE_WRITES,
    )


def control_requests(state_changes: DataFrame) -> DataFrame:
    """One row a partition of a request as a broker handled it; what tells all partitions at once is one row."""
    asked = F.when(F.col("api") != "UpdateMetadata", F.from_json("partitions", _CONTROLLED))
    of_partition = F.col("asked.verdict").alias("partition_verdict")
    return conform(
        _said(state_changes, "ctl_recv")
        .drop("topic", "partition", "leader_epoch")
        .select("*", F.explode_outer(asked).alias("asked"))
        .select("*", "asked.topic", "asked.partition", "asked.leader_epoch", of_partition),
        CONTROL_REQUESTS,
    )


def isr_proposals(state_changes: DataFrame) -> DataFrame:
    """One row a change of its ISR that a leader was about to write."""
    return conform(
        _said(state_changes, "isr_propose")
        .withColumn("old_isr", F.from_json("old", "array<int>"))
        .withColumn("new_isr", F.from_json("new", "array<int>")),
        ISR_PROPOSALS,
    )


def leader_isrs(state_changes: DataFrame) -> DataFrame:
    """One row a set of replicas that a leader waited for before it raised its high watermark."""
    raised = state_changes.where((F.col("ev") == "hw") & (F.col("role") == "leader"))
    risen = F.col("new").cast("bigint").alias("high_watermark")
    furthest = F.max(F.struct(risen, F.col("inc").alias("incarnation"), "seq"))
    return conform(
        raised.groupBy("run_id", "broker", "topic", "partition", "leader_epoch", "zk_version", "isr")
        .agg(F.count("*").alias("advances"), furthest.alias("furthest"))
        .withColumn("isr", F.array_sort("isr"))
        .select("*", "furthest.*"),
        LEADER_ISRS,
    )


def acknowledgements(state_changes: DataFrame) -> DataFrame:
    """One row what a leader acknowledged in an epoch, by acks level and size of its ISR."""
    good = (F.col("ev") == "produce_resp") & (F.col("error") == "0") & (F.col("base_offset") >= 0)
    return conform(
        state_changes.where(good)
        .groupBy("run_id", "broker", "topic", "partition", "leader_epoch", "acks", "isr_size")
        .agg(F.count("*").alias("answers"), F.min("base_offset").alias("first_offset"), _furthest())
        .select("*", "furthest.*"),
        ACKNOWLEDGEMENTS,
    )


def consumer_fetches(state_changes: DataFrame) -> DataFrame:
    """One row what a broker served to consumers in an epoch, by the epoch that they believed in."""
    return conform(
        state_changes.where((F.col("ev") == "fetch_resp") & (F.col("replica") < 0))
        .groupBy("run_id", "broker", "topic", "partition", "leader_epoch", "current_leader_epoch")
        .agg(F.count("*").alias("answers"), _furthest())
        .select("*", "furthest.*"),
        CONSUMER_FETCHES,
    )


def _furthest() -> Column:
    """The answer that went furthest past the high watermark."""
    past = (F.col("last_offset") - F.col("high_watermark")).alias("past")
    return F.max(F.struct(past, "seq", F.col("last_offset").alias("offset"), "high_watermark")).alias("furthest")


def _said(state_changes: DataFrame, kind: str) -> DataFrame:
    return (
        state_changes.where(F.col("ev") == kind)
        .withColumnRenamed("inc", "incarnation")
        .withColumnRenamed("mono", "time_ns")
    )
