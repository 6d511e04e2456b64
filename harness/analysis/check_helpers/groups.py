"""Helpers of checks on consumer groups."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import GROUP_KEY
from harness.contracts.checks import Assumption, Settings
from harness.values import OFFSETS_TOPIC

STORING_MS = 10_000
"""Twice the time in which a group's record must be stored (`offsets.commit.timeout.ms`)."""


def _unlogged(ownerships: DataFrame, group_states: DataFrame) -> DataFrame:
    """Return the runs with members of groups, but without log lines of their coordinators."""
    return ownerships.select("run_id").distinct().join(group_states, on="run_id", how="left_anti")


COORDINATORS_TELL = Assumption(
    facts=("ownerships", "group_states"),
    broken=_unlogged,
    reason="groups had members, and no coordinator's log has them",
)
"""In a run whose groups have members, coordinators log the states of groups."""


def has_ended(state: str = "state") -> Column:
    """Whether the group is deleted in this state, so that its generations may begin at 0 again."""
    return (F.col(state) == "Dead") & (F.col("reason") == "nothing is left of it")


def log_was_given() -> Column:
    """Whether a load could read its log; after a disk error a coordinator begins with what it has read."""
    return F.coalesce("disk_error", F.lit("")) == ""


def with_patience(rows: DataFrame, group_states: DataFrame) -> DataFrame:
    """Add `bound_ms`: how long the row's group may wait for its members before the next generation.

    That is twice the longest rebalance time-out (the second time for static members that have not returned), the
    longest session time-out, and the time to store the group.
    """
    rebalance_ms = F.max("rebalance_timeout_ms").cast("bigint")
    patience = 2 * rebalance_ms + F.max("session_timeout_ms") + STORING_MS
    bounds = group_states.groupBy("run_id", "group").agg(patience.alias("bound_ms"))
    return rows.join(bounds, on=["run_id", "group"], how="inner")


def with_unclean_offsets_topic(rows: DataFrame, leader_epochs: DataFrame, settings: Settings) -> DataFrame:
    """Add `unclean`: whether the offsets topic saw an unclean election that the configuration allowed; else null."""
    allowed = F.coalesce("unclean_allowed", F.lit(settings.unclean_leader_election))
    runs = (
        leader_epochs.where((F.col("topic") == OFFSETS_TOPIC) & F.col("unclean") & allowed)
        .select("run_id", F.lit(True).alias("unclean"))
        .distinct()
    )
    return rows.join(runs, on="run_id", how="left")


def left_unassigned(looks: DataFrame, generations: DataFrame) -> DataFrame:
    """Return the partitions without an owner that stay so, by a gap in Kafka's own protocol.

    A member that is to give a partition back asks for the rebalance in which another one gets it (KIP-429). An instance
    that comes back before that rebalance is over has nothing to give back and does not ask, and a stable group goes on
    without a rebalance (KIP-345). So until the look the last stored assignment gave the partition to no member,
    its coordinator has begun no rebalance since, and the instance that had it before has got another member id since.

    Args:
        looks: With `run_id`, `group` and `looked_ns`, the instant.
        generations: Assignments.

    Returns:
        One row a group and partition, with `instance`, `generation` and `members`, the ids of the instance in it.
    """
    earlier = (
        generations.where(F.col("source") == "coordinator")
        .join(looks.groupBy(*GROUP_KEY).agg(F.max("looked_ns").alias("looked_ns")), on=list(GROUP_KEY), how="inner")
        .where(F.col("time_ns") <= F.col("looked_ns"))
        .withColumn("at", F.struct("coordinator_epoch", "seq", "generation"))
    )
    began_ns = F.when(F.col("rebalance_ns") <= F.col("looked_ns"), F.col("rebalance_ns"))
    in_force = (
        earlier.groupBy(*GROUP_KEY)
        .agg(
            F.max(F.when(F.col("reason") == "stored", F.col("at"))).alias("stored"),
            F.max(F.struct("at", began_ns.alias("rebalance_ns"))).alias("last"),
        )
        .where((F.col("last.at.generation") == F.col("stored.generation")) & F.col("last.rebalance_ns").isNull())
        .select(*GROUP_KEY, "stored")
    )
    returned = (
        earlier.join(in_force, on=list(GROUP_KEY), how="inner")
        .where(F.col("at") >= F.col("stored"))
        .groupBy(*GROUP_KEY, "stored", F.col("owner").alias("instance"))
        .agg(F.collect_set("member").alias("members"))
        .where(F.size("members") > 1)
    )
    owners = (
        earlier.groupBy(*GROUP_KEY, "topic", "partition")
        .agg(F.max(F.struct("at", F.col("owner").alias("instance"))).alias("had"))
        .select("*", "had.instance")
    )
    return (
        owners.join(returned, on=[*GROUP_KEY, "instance"], how="inner")
        .where(F.col("had.at") < F.col("stored"))
        .withColumns({"generation": F.col("stored.generation"), "members": F.array_sort("members")})
        .select(*GROUP_KEY, "topic", "partition", "instance", "generation", "members")
    )
