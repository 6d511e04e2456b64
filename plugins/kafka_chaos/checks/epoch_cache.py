"""I27: a replica's epoch cache agrees with the epochs of its records.

Truncation uses the cache alone. A record whose epoch has no entry, or is in another entry's range, is kept or dropped
with the wrong ones; an entry beyond the log's end, which only the start of a leadership may leave there, has no record
behind it (KIP-101, KAFKA-7415, Kafka's `LeaderEpochFileCache`). The last entry of a log that retention has emptied
stands at the log's start. The leader decides where a log starts: a follower whose cache starts there may keep an
earlier segment, and writes the new start later (`maybeIncrementLogStartOffset`).
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import DUMPS_COMPLETE
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.log_starts import begun, deletable
from harness.analysis.frames import PARTITION_KEY, REPLICA_KEY
from harness.contracts.checks import Assumption, Check, Settings


class EpochCache(Check):
    """Every replica's epoch cache, beside its records and the leaderships of its broker."""

    name: ClassVar[str] = "I27"
    title: ClassVar[str] = "I27 epoch-cache"
    promise: ClassVar[str] = (
        "Every record's epoch has its entry in the replica's epoch cache, and every entry has records or is the start "
        "of a leadership (KIP-101)."
    )
    needs: ClassVar[tuple[str, ...]] = ("replicas", "leader_epochs")
    reads: ClassVar[tuple[str, ...]] = ("replica_records",)
    assumes: ClassVar[tuple[Assumption, ...]] = DUMPS_COMPLETE

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a replica and epoch whose records are under another entry, and one an entry without records."""
        replicas = facts["replicas"].select(
            *REPLICA_KEY, "log_start_offset", "log_end_offset", F.col("leader_epochs").alias("entries")
        )
        known = replicas.where(F.col("entries").isNotNull())
        records = self._records(known, facts["replica_records"], settings)
        return records.unionByName(self._entries(known, facts["leader_epochs"]))

    def _records(self, replicas: DataFrame, records: DataFrame, settings: Settings) -> DataFrame:
        # Kafka moves the cache's beginning at once, and saves the new start of the log within a minute.
        cached_from = F.array_min(F.transform("entries", lambda entry: entry[1]))
        deleted = deletable(settings) & (F.col("offset") < F.coalesce(cached_from, F.lit(0)))
        rows = (
            records.join(replicas, on=list(REPLICA_KEY), how="inner")
            .join(begun(replicas), on=list(PARTITION_KEY), how="inner")
            .where((F.col("offset") >= F.col("begins_at")) & ~deleted)
            .groupBy(*REPLICA_KEY, "leader_epoch")
            .agg(
                F.min("offset").alias("held_from"),
                F.max("offset").alias("held_to"),
                F.any_value("entries").alias("entries"),
            )
            .withColumn("from_epoch", _epoch_at(F.col("held_from")))
            .withColumn("to_epoch", _epoch_at(F.col("held_to")))
            .where((F.col("from_epoch") != F.col("leader_epoch")) | (F.col("to_epoch") != F.col("leader_epoch")))
        )
        return finding(
            rows,
            self.name,
            offset="held_from",
            message=phrase(
                "The epoch cache knows the epoch of every record: broker {broker} holds records of epoch "
                "{leader_epoch} of {topic}-{partition} from offset {held_from} to {held_to}, its cache has {cache}.",
                cache=F.to_json("entries"),
            ),
            evidence=F.array(
                event("replica_records", "broker", "leader_epoch", "held_from", "held_to"),
                event("replicas", "broker", "entries"),
            ),
        )

    def _entries(self, replicas: DataFrame, leader_epochs: DataFrame) -> DataFrame:
        start = F.col("begins_at")
        led = leader_epochs.select(*PARTITION_KEY, F.col("leader").alias("broker"), "leader_epoch")
        beyond = (
            replicas.join(begun(replicas), on=list(PARTITION_KEY), how="inner")
            .select("*", F.explode("entries").alias("entry"))
            .select("*", F.col("entry")[0].cast("int").alias("leader_epoch"), F.col("entry")[1].alias("offset"))
            .where((F.col("offset") >= F.col("log_end_offset")) & ((F.col("offset") > start) | (start == 0)))
        )
        return finding(
            beyond.join(led, on=[*REPLICA_KEY, "leader_epoch"], how="left_anti"),
            self.name,
            message=(
                "Every entry of an epoch cache has records or begins a leadership: the cache of {topic}-{partition} "
                "on broker {broker} has epoch {leader_epoch} from offset {offset} on, where the log ends at "
                "{log_end_offset} and the broker never led in that epoch."
            ),
            evidence=F.array(event("replicas", "broker", "entries", "log_start_offset", "log_end_offset")),
        )


def _epoch_at(offset: Column) -> Column:
    """Return the epoch whose entry covers an offset; -1 where none does."""
    before = F.filter("entries", lambda entry: entry[1] <= offset)
    return F.coalesce(F.array_max(F.transform(before, lambda entry: entry[0])), F.lit(-1))


PLUGIN: type[Check] = EpochCache
