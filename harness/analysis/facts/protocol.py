"""What did brokers decide, write, obey and acknowledge, by their own logs, and for which replicas did leaders wait?

What leaders do for every record is gathered by leader epoch, so that facts stay small under any load.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.facts.clients import successes
from harness.analysis.facts.epochs import STATE_PATH
from harness.analysis.frames import conform, in_turn
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import (
    ACKNOWLEDGEMENTS,
    CONSUMER_FETCHES,
    CONTROL_REQUESTS,
    ELECTIONS,
    EPOCH_ANSWERS,
    ISR_PROPOSALS,
    LEADER_ISRS,
    REFUSALS,
    STATE_WRITES,
    UNEXPECTED_ERRORS,
)

_DECIDED = "leader int, leader_epoch int, isr array<int>"
_CONTROLLED = "array<struct<topic: string, partition: int, leader_epoch: int, verdict: string>>"


def elections(state_changes: StateChanges) -> DataFrame:
    """One row a decision about a partition's leader."""
    before = [F.col(f"previous.{name}").alias(f"previous_{name}") for name in ("leader", "leader_epoch", "isr")]
    return conform(
        state_changes.of("election")
        .withColumn("decided", F.from_json("result", _DECIDED))
        .drop("leader", "leader_epoch", "isr", "previous_leader_epoch")
        .select("*", "decided.*", *before),
        ELECTIONS,
    )


def state_writes(state_changes: StateChanges) -> DataFrame:
    """One row a write of a partition's state znode, as it ended for the broker that wrote."""
    return conform(
        state_changes.of("zk_write")
        .where(F.col("path").rlike(STATE_PATH))
        .withColumn("topic", F.regexp_extract("path", STATE_PATH, 1))
        .withColumn("partition", F.regexp_extract("path", STATE_PATH, 2))
        .withColumn("zk_version", F.col("new_version"))
        .withColumnRenamed("by", "writer"),
        STATE_WRITES,
    )


def control_requests(state_changes: StateChanges) -> DataFrame:
    """One row a partition of a request as a broker handled it; UpdateMetadata is one row as a whole."""
    partitions = F.when(F.col("api") != "UpdateMetadata", F.from_json("partitions", _CONTROLLED))
    verdict = F.col("item.verdict").alias("partition_verdict")
    return conform(
        state_changes.of("ctl_recv")
        .drop("topic", "partition", "leader_epoch")
        .select("*", F.explode_outer(partitions).alias("item"))
        .select("*", "item.topic", "item.partition", "item.leader_epoch", verdict),
        CONTROL_REQUESTS,
    )


def isr_proposals(state_changes: StateChanges) -> DataFrame:
    """One row a change of its ISR that a leader was about to write."""
    return conform(
        state_changes.of("isr_propose")
        .withColumn("old_isr", F.from_json("old", "array<int>"))
        .withColumn("new_isr", F.from_json("new", "array<int>")),
        ISR_PROPOSALS,
    )


def leader_isrs(state_changes: StateChanges) -> DataFrame:
    """One row a set of replicas for which a leader waited, in one leader epoch, before it raised its high watermark."""
    advances = state_changes.of("hw").where(F.col("role") == "leader")
    high_watermark = F.col("new").cast("bigint").alias("high_watermark")
    place = F.struct(high_watermark, "incarnation", "seq")
    furthest = F.max_by(place, in_turn(high_watermark, "incarnation", "seq"))
    return conform(
        advances.groupBy("run_id", "broker", "topic", "partition", "leader_epoch", "zk_version", "isr")
        .agg(F.count("*").alias("advances"), furthest.alias("furthest"))
        .withColumn("isr", F.array_sort("isr"))
        .select("*", "furthest.*"),
        LEADER_ISRS,
    )


def acknowledgements(state_changes: StateChanges) -> DataFrame:
    """One row a leader, leader epoch, acks level and size of its ISR: what it acknowledged."""
    return conform(
        successes(state_changes)
        .groupBy("run_id", "broker", "topic", "partition", "leader_epoch", "acks", "isr_size")
        .agg(F.count("*").alias("answers"), F.min("base_offset").alias("first_offset"), _furthest())
        .select("*", "furthest.*"),
        ACKNOWLEDGEMENTS,
    )


def epoch_answers(state_changes: StateChanges) -> DataFrame:
    """One row an answer to OffsetForLeaderEpoch."""
    return conform(state_changes.of("ofle"), EPOCH_ANSWERS)


def unexpected_errors(state_changes: StateChanges) -> DataFrame:
    """One row an error that a broker's code does not foresee."""
    return conform(state_changes.of("unexpected_error"), UNEXPECTED_ERRORS)


def refusals(state_changes: StateChanges) -> DataFrame:
    """One row a leader, leader epoch, acks level, error and size of its ISR: what it refused."""
    return conform(
        state_changes.of("produce_resp")
        .where(F.col("error") != "0")
        .groupBy("run_id", "broker", "topic", "partition", "leader_epoch", "acks", "error", "isr_size")
        .agg(
            F.count("*").alias("answers"),
            F.min("seq").alias("seq"),
            F.min("time_ns").alias("from_ns"),
            F.max("time_ns").alias("to_ns"),
        ),
        REFUSALS,
    )


def consumer_fetches(state_changes: StateChanges) -> DataFrame:
    """One row a broker, its leader epoch and the one that consumers believed in: what it served to them."""
    return conform(
        state_changes.of("fetch_resp")
        .where(F.col("replica") < 0)
        .groupBy("run_id", "broker", "topic", "partition", "leader_epoch", "current_leader_epoch")
        .agg(F.count("*").alias("answers"), _furthest())
        .select("*", "furthest.*"),
        CONSUMER_FETCHES,
    )


def _furthest() -> Column:
    """The answer that went furthest past the high watermark."""
    past = F.col("last_offset") - F.col("high_watermark")
    answer = F.struct("seq", F.col("last_offset").alias("offset"), "high_watermark")
    return F.max_by(answer, in_turn(past, "seq", "last_offset", "high_watermark")).alias("furthest")
