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

DELETED_WITHIN_NS = 20_000_000_000
"""Most time from the last broker's return to the end of the deletion, on a busy machine."""
_DELETION = ("run_id", "topic", "zxid")
_IN_OFFICE = (*_DELETION, "controller", "controller_epoch")


class DeletionInTime(Check):
    """The spans in which nothing held a requested deletion up, and it did not end."""

    name: ClassVar[str] = "deletion-in-time"
    title: ClassVar[str] = "deletion-in-time"
    promise: ClassVar[str] = (
        "A topic that is to be deleted is gone within the session time-out and 20 s of a controller in office and live "
        "brokers with all its replicas (TopicDeletionManager.resumeDeletions, KafkaController.onBrokerStartup)."
    )
    needs: ClassVar[tuple[str, ...]] = ("registrations", "controller_epochs")
    about: ClassVar[Subject] = rows_of("deletions", "requested deletions")
    reads: ClassVar[tuple[str, ...]] = ("deletions", "fault_windows")
    fields: ClassVar[tuple[str, ...]] = ("zk_session",)
    """Without ZooKeeper a topic is deleted by one record of the quorum, and no request waits."""

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a requested deletion: the longest span in which it should have ended."""
        held = facts["registrations"].where(F.col("source") == "zookeeper")
        faults = facts["fault_windows"]
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
        .join(excluded, on="run_id", how="left")
        .where((F.size("replicas") > 0) & ~overlap)
        .withColumns({"from_ns": F.greatest("time_ns", "assigned_ns"), "to_ns": F.col("until_ns")})
        .select(*_DELETION, "replicas", "from_ns", "to_ns")
        .where(F.col("time_ns").isNotNull() & (F.col("from_ns") < F.col("to_ns")))
    )


def _in_office(pending: DataFrame, controller_epochs: DataFrame) -> DataFrame:
    """One row a deletion and a controller that was in office meanwhile, and how long both lasted."""
    controllers = controller_epochs.where(F.col("source") != "broker").select(
        "run_id",
        F.col("broker").alias("controller"),
        "controller_epoch",
        F.col("time_ns").alias("elected_ns"),
        "left_ns",
    )
    return (
        pending.join(controllers, on="run_id", how="inner")
        .withColumns(
            {"from_ns": F.greatest("from_ns", "elected_ns"), "to_ns": F.least("to_ns", "left_ns")},
        )
        .where(F.col("from_ns") < F.col("to_ns"))
        .drop("elected_ns", "left_ns")
    )


def _begun(pending: DataFrame, held: DataFrame, disturbed: DataFrame) -> DataFrame:
    """One row a deletion, a controller and an instant from which nothing may hold the deletion up any more."""
    instants = (
        held.select("run_id", "broker", F.col("time_ns").alias("instant"))
        .unionByName(
            disturbed.select(
                "run_id", F.lit(None).cast("int").alias("broker"), F.col("disturbed_to_ns").alias("instant")
            )
        )
        .where(F.col("instant").isNotNull())
    )
    concerns = F.col("broker").isNull() | F.array_contains("replicas", F.col("broker"))
    later = (
        pending.join(instants, on="run_id", how="inner")
        .where(concerns & (F.col("instant") > F.col("from_ns")) & (F.col("instant") < F.col("to_ns")))
        .withColumn("from_ns", F.col("instant"))
        .select(*pending.columns)
    )
    return pending.unionByName(later).distinct()


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
    """Those of these spans at whose beginning no disturbing fault is in force, until the next one is."""
    since, until = F.col("disturbed_from_ns"), F.col("disturbed_to_ns")
    in_force = (
        F.col("is_fault")
        & F.coalesce(since <= F.col("from_ns"), F.lit(True))
        & F.coalesce(until > F.col("from_ns"), F.lit(True))
    )
    return (
        spans.join(disturbed.withColumn("is_fault", F.lit(True)), on="run_id", how="left")
        .groupBy(*spans.columns)
        .agg(
            F.bool_or(in_force).alias("disturbed"),
            F.min(F.when(since > F.col("from_ns"), since)).alias("next_ns"),
        )
        .where(~F.coalesce("disturbed", F.lit(False)))
        .withColumn("to_ns", F.least("to_ns", "next_ns"))
        .select(*spans.columns)
    )


PLUGIN: type[Check] = DeletionInTime
