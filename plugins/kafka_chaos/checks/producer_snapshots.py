"""producer-snapshots: a replica's producer state equals the replay of its log, and replicas in sync agree.

A snapshot holds each producer's epoch, last sequence number, last coordinator epoch and open transaction. A leader that
remembers otherwise takes what it must refuse, or refuses what it must take (KAFKA-12153, KAFKA-9307). The latest
snapshot of each replica is compared with the log before it. Producers of which the log before it has lost something
are not judged. Where producers expire, a broker may have forgotten the last record or the last coordinator of one that
had no open transaction, but neither its epoch nor what it wrote since.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, last_isr
from harness.analysis.check_helpers.transactions import PRODUCER_KEY, OfTransactions, thinned_logs, without_thinned
from harness.analysis.frames import PARTITION_KEY, REPLICA_KEY
from harness.contracts.checks import Check, Settings

_NONE = -1
_COMPARED = ("producer_epoch", "last_offset", "coordinator_epoch", "transaction_first_offset")


class ProducerSnapshots(OfTransactions):
    """Every transactional producer in a snapshot beside the replay of its log, and markers beside those of others."""

    name: ClassVar[str] = "producer-snapshots"
    title: ClassVar[str] = "producer-snapshots"
    promise: ClassVar[str] = (
        "A replica's producer state equals the replay of its log, and markers are equal across the ISR (KAFKA-12153)."
    )
    reads: ClassVar[tuple[str, ...]] = (
        *OfTransactions.reads,
        "producer_states",
        "partition_states",
        "replica_records",
        "topics",
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a producer that a snapshot has otherwise, and one a marker that a replica in sync lacks."""
        return self._snapshots(facts, settings).unionByName(self._markers(facts, settings))

    def _snapshots(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        key = list(PRODUCER_KEY)
        states = facts["producer_states"].withColumn("state", F.struct("snapshot_offset", *_COMPARED))
        written = (
            facts["transactional_batches"]
            .select(*key, "producer_epoch", "first_offset", "last_offset", F.lit(None).alias("closes"))
            .unionByName(
                facts["markers"].select(
                    *(*key, "producer_epoch"),
                    F.col("offset").alias("first_offset"),
                    F.col("offset").alias("last_offset"),
                    F.col("coordinator_epoch").alias("closes"),
                )
            )
        )
        thinned = thinned_logs(facts)
        of_batches = facts["transactional_batches"].select(*key)
        plain = facts["replica_records"].select(*key).distinct().join(of_batches, on=key, how="left_anti")
        is_marker = F.col("closes").isNotNull()
        after_marker = F.coalesce(F.col("first_offset") > F.col("marker.offset"), F.lit(True))
        marker = F.struct(F.col("first_offset").alias("offset"), "closes")
        before = (
            states.select(*key, "state")
            .join(written, on=key, how="inner")
            .where(F.col("first_offset") < F.col("state.snapshot_offset"))
        )
        marked = before.groupBy(*key).agg(F.max(F.when(is_marker, marker)).alias("marker"))
        replayed = (
            before.join(marked, on=key, how="left")
            .groupBy(*key, "state", "marker")
            .agg(
                F.max_by("producer_epoch", "first_offset").alias("epoch"),
                F.max(F.when(~is_marker, F.struct("last_offset", "producer_epoch"))).alias("data"),
                F.min(F.when(after_marker, F.col("first_offset"))).alias("open"),
            )
        )
        last = F.when(F.col("data.producer_epoch") == F.col("epoch"), F.col("data.last_offset"))
        rows = (
            replayed.join(thinned, on=list(REPLICA_KEY), how="left_anti")
            .join(plain, on=key, how="left_anti")
            .withColumn(
                "log",
                F.struct(
                    F.col("epoch").alias("producer_epoch"),
                    _or_none(last).alias("last_offset"),
                    _or_none(F.col("marker.closes")).alias("coordinator_epoch"),
                    _or_none(F.col("open")).alias("transaction_first_offset"),
                ),
            )
            .where(
                (F.col("log.producer_epoch") != F.col("state.producer_epoch"))
                | _differs("last_offset", settings)
                | _differs("coordinator_epoch", settings)
                | (F.col("log.transaction_first_offset") != F.col("state.transaction_first_offset"))
            )
        )
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            offset="state.snapshot_offset",
            severity=F.col("severity"),
            message=(
                "A replica's producer state equals the replay of its log: for producer {producer_id} the snapshot of "
                "broker {broker} at offset {state.snapshot_offset} of {topic}-{partition} differs from the log "
                "before it."
            ),
            evidence=F.array(
                event("producer_states", "broker", "producer_id", "state"),
                event("transactional_batches", "broker", "producer_id", "log"),
            ),
        )

    def _markers(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """The markers below the high watermark that another member of the last ISR holds, and one does not."""
        key = [*PARTITION_KEY, "offset", "producer_id", "producer_epoch", "result", "coordinator_epoch"]
        members = (
            facts["replicas"]
            .select(*REPLICA_KEY, "high_watermark")
            .join(last_isr(facts["partition_states"], facts["topics"]), on=list(REPLICA_KEY), how="left_semi")
        )
        held = without_thinned(facts["markers"].select("broker", *key), facts)
        of_members = held.join(members.select(*REPLICA_KEY), on=list(REPLICA_KEY), how="left_semi")
        wanted = of_members.select(*key).distinct().join(members, on=list(PARTITION_KEY), how="inner")
        rows = wanted.where(F.col("offset") < F.col("high_watermark")).join(held, on=[*key, "broker"], how="left_anti")
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "Replicas in sync have the same markers: broker {broker} lacks the marker ({result}) of producer "
                "{producer_id}, epoch {producer_epoch}, at offset {offset} of {topic}-{partition}."
            ),
            evidence=F.array(event("markers", "broker", "offset", "producer_id", "producer_epoch", "result")),
        )


def _differs(name: str, settings: Settings) -> Column:
    """Return whether a snapshot differs in what is forgotten of an idle producer; none is right where they expire."""
    log, state = F.col(f"log.{name}"), F.col(f"state.{name}")
    return (log != state) & ((state != _NONE) | ~F.lit(settings.producers_expire))


def _or_none(value: Column) -> Column:
    return F.coalesce(value.cast("bigint"), F.lit(_NONE).cast("bigint"))


PLUGIN: type[Check] = ProducerSnapshots
