"""I23: nothing is left of a deleted topic.

The controller removes the topic's znode last but for its configuration and the request, when every replica has answered
that its log is gone (Kafka's `TopicDeletionManager.completeDeleteTopic`). So once the znode is gone and no request is
left, no configuration and no log directory may be there. A deletion that still waits for a dead broker is not judged,
nor is a log on a broker that was no replica any more: a reassignment does not wait until what it takes away is deleted
(`KafkaController.stopRemovedReplicasOfReassignedPartition`).

A log of a partition that was being reassigned is a note. When one of its brokers starts, the controller resumes the
reassignment and sends LeaderAndIsr to all replicas, and then resumes the deletion, of the replicas alone that were not
deleted before (`KafkaController.onBrokerStartup`). So a log may be there again that nothing deletes.

Deleting a log only puts its folder aside; its files go when `log.segment.delete.delay.ms` is over, which begins anew
when the broker starts again (Kafka's `LogManager.deleteLogs`); Kafka does not look for the first 30 s of a process.
What a failed disk held stays.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Check, Settings, Severity, Subject

LATE_S = 5
"""Longer than a timer of a busy broker is late."""


class DeletedTopics(Check):
    """Every topic whose znode is gone, and what remains of it."""

    name: ClassVar[str] = "I23"
    title: ClassVar[str] = "I23 deleted-topics"
    promise: ClassVar[str] = (
        "A deleted topic leaves no configuration and no log behind (TopicDeletionManager.completeDeleteTopic), and "
        "deleted logs leave the disks in time (LogManager.deleteLogs)."
    )
    needs: ClassVar[tuple[str, ...]] = ("topics", "replicas")
    about: ClassVar[Subject] = rows_of("topics", "deleted topics", "not present")
    reads: ClassVar[tuple[str, ...]] = ("deleted_logs", "partition_states")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a log, a configuration or a folder that was left behind."""
        return self._remains(facts).unionByName(self._overdue(facts["deleted_logs"], settings))

    def _remains(self, facts: dict[str, DataFrame]) -> DataFrame:
        deleted = facts["topics"].where(~F.col("present") & ~F.col("deletion_pending"))
        assigned = (
            facts["partition_states"]
            .groupBy(*PARTITION_KEY)
            .agg(F.max_by("assignment", "zxid").alias("last_assignment"))
        )
        of_replicas = (
            facts["replicas"]
            .join(assigned, on=list(PARTITION_KEY), how="left")
            .where(F.coalesce(F.array_contains("last_assignment", F.col("broker")), F.lit(True)))
        )
        logs = of_replicas.select(
            "run_id",
            "topic",
            "partition",
            F.col("partition").alias("of_partition"),
            phrase("the log of partition {partition} on broker {broker}").alias("remainder"),
            event("replicas", "broker", "partition", "log_start_offset", "log_end_offset").alias("remainder_event"),
        )
        remains = deleted.join(logs, on=["run_id", "topic"], how="inner").unionByName(
            deleted.where("configured").select(
                "*", F.lit("its configuration").alias("remainder"), F.lit("{}").alias("remainder_event")
            ),
            allowMissingColumns=True,
        )
        made_again = F.array_contains("reassigned", F.col("of_partition"))
        return finding(
            remains,
            self.name,
            severity=F.when(made_again, Severity.NOTE.value).otherwise(Severity.VIOLATION.value),
            message="A deleted topic leaves nothing behind: {topic} is deleted, and {remainder} is still there.",
            evidence=F.array(event("topics", "topic", "zxid", "configured"), F.col("remainder_event")),
        )

    def _overdue(self, logs: DataFrame, settings: Settings) -> DataFrame:
        put_aside_ns, delay_ns = F.greatest("stopped_ns", "began_ns"), _ns(settings.delete_delay_ms)
        due_ns = F.greatest(put_aside_ns + delay_ns, F.col("began_ns") + _ns(settings.first_deletion_ms))
        rows = (
            logs.where(F.col("stopped_ns").isNotNull() & F.col("began_ns").isNotNull() & ~F.col("disk_failed"))
            .withColumn("late_s", (F.col("lived_ns") - due_ns) / 1e9)
            .where(F.col("late_s") >= LATE_S)
        )
        return finding(
            rows,
            self.name,
            message=(
                "A deleted log leaves the disk in time: broker {broker} still has {folder} of {topic}-{partition}, "
                "{late_s:.0f} s after the delay has ended."
            ),
            evidence=F.array(event("deleted_logs", "broker", "folder", "stopped_ns", "began_ns", "lived_ns")),
        )


def _ns(milliseconds: int) -> Column:
    return F.lit(milliseconds).cast("bigint") * 1_000_000


PLUGIN: type[Check] = DeletedTopics
