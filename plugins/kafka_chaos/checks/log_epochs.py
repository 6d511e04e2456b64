"""I12: leader epochs increase along a log, and each record carries the epoch of the leader that wrote it.

Truncation compares epochs, not offsets. So entries of a log's epoch cache must increase in epoch and offset, a record's
epoch is never lower than that of the record before it, and a record with an epoch was written by the leader of that
epoch (KIP-101, Kafka's `LeaderEpochFileCache`). Records are compared by the range of offsets of each epoch.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.frames import PARTITION_KEY, REPLICA_KEY, in_order
from harness.contracts.checks import Assumption, Check, Settings


class LogEpochs(Check):
    """Every replica's epoch cache and records, and what the leader of each epoch says that it wrote."""

    name: ClassVar[str] = "I12"
    title: ClassVar[str] = "I12 log-epochs"
    promise: ClassVar[str] = (
        "A log's leader epochs increase strictly with their start; a record has the epoch of its writer, which never "
        "decreases (KIP-101)."
    )
    needs: ClassVar[tuple[str, ...]] = ("replicas", "appends")
    reads: ClassVar[tuple[str, ...]] = ("replica_records",)
    assumes: ClassVar[tuple[Assumption, ...]] = (BROKERS_WHOLE,)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a cache that does not increase, and one a replica and epoch with records at wrong offsets."""
        return self._caches(facts["replicas"]).unionByName(self._records(facts["replica_records"], facts["appends"]))

    def _caches(self, replicas: DataFrame) -> DataFrame:
        entries = F.col("leader_epochs")
        steps = F.arrays_zip(entries.alias("lower"), F.slice(entries, 2, F.size(entries)).alias("upper"))
        rows = replicas.where(F.exists(steps, lambda step: ~_rises(step.getField("lower"), step.getField("upper"))))
        return finding(
            rows,
            self.name,
            message=phrase(
                "The epoch cache strictly increases in epoch and start offset: that of {topic}-{partition} on "
                "broker {broker} is {leader_epochs}.",
                leader_epochs=F.to_json("leader_epochs"),
            ),
            evidence=F.array(event("replicas", "broker", "leader_epochs", "log_start_offset", "log_end_offset")),
        )

    def _records(self, records: DataFrame, appends: DataFrame) -> DataFrame:
        written = (
            appends.where(F.col("role") == "leader")
            .groupBy(*PARTITION_KEY, "leader_epoch")
            .agg(F.min("first_offset").alias("written_from"), F.max("last_offset").alias("written_to"))
        )
        logged = appends.select(*PARTITION_KEY).distinct()  # an existing cluster's logs are not read of every topic
        ranges = (
            records.join(logged, on=list(PARTITION_KEY), how="left_semi")
            .groupBy(*REPLICA_KEY, "leader_epoch")
            .agg(F.min("offset").alias("held_from"), F.max("offset").alias("held_to"))
        )
        inside = (F.col("held_from") >= F.col("written_from")) & (F.col("held_to") <= F.col("written_to"))
        wrong = F.when(
            F.col("held_from") <= F.col("older_to"),
            phrase("a record of an older epoch at offset {older_to} does not come before them"),
        ).when(~F.coalesce(inside, F.lit(False)), "the leader of that epoch did not write them there")
        rows = (
            ranges.withColumn("older_to", F.lag("held_to").over(in_order(*REPLICA_KEY, by=("leader_epoch",))))
            .join(written, on=[*PARTITION_KEY, "leader_epoch"], how="left")
            .withColumn("wrong", wrong)
            .where(F.col("wrong").isNotNull())
        )
        return finding(
            rows,
            self.name,
            offset="held_from",
            message=(
                "Records have their writers' epochs, which never decrease: broker {broker} holds records of epoch "
                "{leader_epoch} of {topic}-{partition} from offset {held_from} to {held_to}, but {wrong}."
            ),
            evidence=F.array(
                event("replica_records", "broker", "leader_epoch", "held_from", "held_to", "older_to"),
                event("appends", "leader_epoch", "written_from", "written_to"),
            ),
        )


def _rises(lower: Column, upper: Column) -> Column:
    return (upper[0] > lower[0]) & (upper[1] > lower[1])


PLUGIN: type[Check] = LogEpochs
