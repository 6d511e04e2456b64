"""deletion-in-time: while a controller is in office and all replicas are on live brokers, a requested deletion ends.

A controller asks the brokers to delete a topic's replicas, waits for those that are dead, and goes on when a broker
comes that has replicas of it, when a reassignment of it is done, and at a failover (Kafka's
`KafkaController.onBrokerStartup`, `TopicDeletionManager.resumeDeletions`). So with every broker there, the topic is
gone soon. A registered broker may be silent for the session time-out, and the rest of the limit is for the machine. A
topic that is being reassigned is not judged, as the deletion waits for that, nor one with a replica on a broker that
shuts down or has a failed disk.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.disturbances import disturbances, impaired
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Check, Settings, Subject

DELETED_WITHIN_NS = 30_000_000_000
"""Most time from the last broker's return to the end of the deletion, on a busy machine or with a slow ZooKeeper."""
_DELETION = ("run_id", "topic", "zxid")


class DeletionInTime(Check):
    """The spans in which nothing held a requested deletion up, and it did not end."""

    name: ClassVar[str] = "deletion-in-time"
    title: ClassVar[str] = "deletion-in-time"
    promise: ClassVar[str] = (
        "A topic that is to be deleted is gone within the session time-out and 30 s of a controller in office and live "
        "brokers with all its replicas (TopicDeletionManager.resumeDeletions, KafkaController.onBrokerStartup)."
    )
    needs: ClassVar[tuple[str, ...]] = ("registrations", "controller_epochs")
    about: ClassVar[Subject] = rows_of("deletions", "requested deletions")
    reads: ClassVar[tuple[str, ...]] = ("deletions", "fault_windows")
    fields: ClassVar[tuple[str, ...]] = ("zk_session",)
    """Without ZooKeeper a topic is deleted by one record of the quorum, and no request waits."""

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a requested deletion: the longest span in which it should have ended."""
        held, faults = facts["registrations"], facts["fault_windows"]
        pending = _in_office(_judged(facts["deletions"], impaired(faults)), facts["controller_epochs"])
        disturbed = disturbances(faults)
        spans = _undisturbed(_alive(_begun(pending, held, disturbed), held), disturbed)
        longest_ns = F.lit(settings.session_timeout_ms).cast("bigint") * 1_000_000 + DELETED_WITHIN_NS
        rows = (
            spans.withColumn("lasted_ns", F.col("to_ns") - F.col("from_ns"))
            .where(F.col("lasted_ns") > longest_ns)
            .groupBy(*_DELETION)
            .agg(F.max(F.struct("lasted_ns", "from_ns", "controller", "controller_epoch", "replicas")).alias("span"))
            .select(*_DELETION, "span.*")
        )
        return finding(
            rows,
            self.name,
            message=phrase(
                "A requested deletion ends: {topic} was still to be deleted after {for_s:.1f} s in which controller "
                "{controller} was in office and the brokers with its replicas, {alive}, were all alive, and the limit "
                "is {s:.0f} s.",
                for_s=F.col("lasted_ns") / 1e9,
                alive=ids("replicas"),
                s=longest_ns / 1e9,
            ),
            evidence=F.array(
                event("deletions", "topic", "zxid", "replicas"),
                event("controller_epochs", "controller as broker", "controller_epoch"),
            ),
        )


def _judged(deletions: DataFrame, impaired_brokers: DataFrame) -> DataFrame:
    """The deletions that only dead brokers hold up, from `from_ns` to `to_ns`."""
    excluded = impaired_brokers.groupBy("run_id").agg(F.collect_set("member").alias("excluded"))
    overlap = F.arrays_overlap("replicas", F.coalesce("excluded", F.array().cast("array<int>")))
    return (
        deletions.where(~F.col("reassigned"))
        .where(F.col("time_ns").isNotNull())
        .join(excluded, on="run_id", how="left")
        .where(~overlap)
        .withColumns({"from_ns": F.greatest("time_ns", "assigned_ns"), "to_ns": F.col("until_ns")})
        .select(*_DELETION, "replicas", "from_ns", "to_ns")
    )


def _in_office(pending: DataFrame, controller_epochs: DataFrame) -> DataFrame:
    """One row a deletion and a controller, and how long both lasted; less than no time where they did not meet."""
    controllers = controller_epochs.where(F.col("source") != "broker").select(
        "run_id",
        F.col("broker").alias("controller"),
        "controller_epoch",
        F.col("time_ns").alias("elected_ns"),
        "left_ns",
    )
    return (
        pending.join(controllers, on="run_id", how="inner")
        .withColumns({"from_ns": F.greatest("from_ns", "elected_ns"), "to_ns": F.least("to_ns", "left_ns")})
        .drop("elected_ns", "left_ns")
    )


def _begun(pending: DataFrame, held: DataFrame, disturbed: DataFrame) -> DataFrame:
    """These rows from each instant on that may be the last from which something holds the deletion up.

    An instant that is none gives a part of a longer span. What came before a row's beginning gives the row itself.
    """
    came = held.select("run_id", F.col("time_ns").alias("instant"))
    healed = disturbed.select("run_id", F.col("disturbed_to_ns").alias("instant"))
    return (
        pending.join(came.unionByName(healed), on="run_id", how="inner")
        .withColumn("from_ns", F.greatest("from_ns", "instant"))
        .select(*pending.columns)
        .distinct()
    )


def _alive(begun: DataFrame, held: DataFrame) -> DataFrame:
    """Those of these rows at whose beginning all brokers with replicas are registered, until the first of them goes."""
    members = held.select(
        "run_id",
        "broker",
        F.col("time_ns").alias("since_ns"),
        F.least("until_ns", "leaves_ns").alias("till_ns"),
    )
    return (
        begun.join(members, on="run_id", how="inner")
        .where(F.array_contains("replicas", F.col("broker")) & (F.col("since_ns") <= F.col("from_ns")))
        .where(F.coalesce(F.col("till_ns") > F.col("from_ns"), F.lit(True)))
        .groupBy(*begun.columns)
        .agg(F.count_distinct("broker").alias("live"), F.min("till_ns").alias("till_ns"))
        .where(F.col("live") == F.size("replicas"))
        .withColumn("to_ns", F.least("to_ns", "till_ns"))
        .select(*begun.columns)
    )


def _undisturbed(spans: DataFrame, disturbed: DataFrame) -> DataFrame:
    """These spans until a disturbing fault is in force; one that is already leaves nothing of a span."""
    since, until, from_ns = F.col("disturbed_from_ns"), F.col("disturbed_to_ns"), F.col("from_ns")
    not_over = F.coalesce(until > from_ns, F.col("is_fault"))
    return (
        spans.join(disturbed.withColumn("is_fault", F.lit(True)), on="run_id", how="left")
        .groupBy(*spans.columns)
        .agg(F.min(F.when(not_over, F.coalesce(since, from_ns))).alias("next_ns"))
        .withColumn("to_ns", F.least("to_ns", "next_ns"))
        .select(*spans.columns)
    )


PLUGIN: type[Check] = DeletionInTime
