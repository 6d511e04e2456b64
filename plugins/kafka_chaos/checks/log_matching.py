"""I9: the same offset and leader epoch hold the same record on every replica.

If two replicas hold the same offset with the same leader epoch, they hold the same log up to there; and once the
cluster is quiet, the members of the ISR hold the same log altogether. A replica outside the ISR may have a tail of its
own, which it drops when it returns. Coordinators write to internal topics at any time, also after the load has ended:
there the leader's last records may be beyond its high watermark, and followers need not have fetched them yet.

Each replica is compared with one reference, the first member of the last ISR. Replicas of a compacted topic are cleaned
each by itself: what a later committed record with its key replaces may be in one and not in the other, all else must be
in both. A replica that was away for longer than tombstones are kept, or is still away, may have missed one, and keeps
what it removed. For an internal topic no client's evidence shows that tombstone, so such a record is not judged there.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.assumptions import COMPACTIONS_TOLD, DUMPS_COMPLETE
from harness.analysis.check_helpers.compaction import SUPERSEDED, by_committed, with_superseded
from harness.analysis.check_helpers.findings import event, finding, last_isr, phrase
from harness.analysis.frames import PARTITION_KEY, contains, in_order, stored
from harness.contracts.checks import Assumption, Check, Settings

_REPLICA = [*PARTITION_KEY, "broker"]


class LogMatching(Check):
    """The dumps of all replicas, offset by offset."""

    name: ClassVar[str] = "I9"
    title: ClassVar[str] = "I9 log-matching"
    promise: ClassVar[str] = (
        "The same offset and leader epoch mean the same log up to there; ISR members end up with equal logs (KIP-101)."
    )
    needs: ClassVar[tuple[str, ...]] = ("replicas", "partition_states")
    reads: ClassVar[tuple[str, ...]] = ("replica_records", SUPERSEDED, "topics")
    assumes: ClassVar[tuple[Assumption, ...]] = (*DUMPS_COMPLETE, COMPACTIONS_TOLD)
    prefiltered: ClassVar[str] = (
        "Replicas that differ do so within a block, and the last block of equal records before it, or of all, stays."
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a replica and offset that differs, and one a replica that ends elsewhere than the reference."""
        pairs = stored(_pairs(facts["replicas"], facts["partition_states"], facts["topics"]))
        return self._differing(pairs, facts, settings).unionByName(self._other_ends(pairs))

    def _differing(self, pairs: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        own = F.col("holder") == F.col("broker")
        offset = F.col("offset")
        compared = (
            facts["replica_records"]
            .select(
                *PARTITION_KEY,
                F.col("broker").alias("holder"),
                "offset",
                F.struct("leader_epoch", "digest", "value").alias("content"),
            )
            .join(pairs.hint("shuffle_hash"), on=list(PARTITION_KEY), how="inner")
            .where(own | (F.col("holder") == F.col("reference")))
            .where((offset >= F.col("from_offset")) & (offset < F.col("to_offset")))
            .groupBy(*_REPLICA, "offset")
            .agg(
                F.first("reference").alias("reference"),
                F.first("in_isr").alias("in_isr"),
                F.max(F.when(own, F.col("content"))).alias("held"),
                F.max(F.when(~own, F.col("content"))).alias("expected"),
            )
        )
        same_epoch = F.col("held.leader_epoch").eqNullSafe(F.col("expected.leader_epoch"))
        same = same_epoch & F.col("held.digest").eqNullSafe(F.col("expected.digest"))
        matched = F.max(F.when(same, offset)).over(Window.partitionBy(*_REPLICA))
        must_match = F.col("in_isr") | same_epoch | (offset < F.col("matched_offset"))
        differing = compared.withColumn("matched_offset", matched).where(~same & must_match)
        absent = F.col("held").isNull() | F.col("expected").isNull()
        removed = by_committed(facts[SUPERSEDED], settings)
        rows = with_superseded(differing, removed).where(~(absent & F.col(SUPERSEDED)))
        internal = F.col("topic").startswith("__")
        missed = _missed_tombstones(pairs, facts["partition_states"], settings)
        still_away = F.col("expected").isNull() & F.col("in_isr").isNull()
        rows = (
            rows.withColumn("tombstone_gone", absent & internal)
            .join(missed, on=list(_REPLICA), how="inner")
            .where(~(F.col("tombstone_gone") & (F.col("missed") | still_away)))
        )
        return finding(
            rows,
            self.name,
            leader_epoch="held.leader_epoch",
            message=phrase(
                "Replicas agree: at {topic}-{partition} offset {offset} broker {broker} holds {held} where broker "
                "{reference} holds {expected}.",
                held=_described("held"),
                expected=_described("expected"),
            ),
            evidence=F.array(
                event("replica_records", "broker", "offset", "held as holds"),
                event("replica_records", "reference as broker", "offset", "expected as holds"),
            ),
        )

    def _other_ends(self, pairs: DataFrame) -> DataFrame:
        other_ends = F.col("in_isr") & (F.col("log_end_offset") != F.col("reference_end_offset"))
        rows = pairs.where(other_ends & ~F.coalesce(_still_to_fetch(), F.lit(False)))
        return finding(
            rows,
            self.name,
            offset="to_offset",
            message=(
                "ISR members end up with equal logs: {topic}-{partition} ends at offset {log_end_offset} on broker "
                "{broker}, at offset {reference_end_offset} on broker {reference}."
            ),
            evidence=F.array(
                event("replicas", "broker", "log_end_offset"),
                event("replicas", "reference as broker", "reference_end_offset as log_end_offset"),
            ),
        )


def _missed_tombstones(pairs: DataFrame, partition_states: DataFrame, settings: Settings) -> DataFrame:
    """One row a replica that, or whose reference, was out of the ISR for so long that it may have missed a tombstone.

    It then has a record for ever that the tombstone removed elsewhere, and nothing shows why. The last version has no
    known end, and does not count.
    """
    until_ns = F.lead("time_ns").over(in_order(*PARTITION_KEY, by=("zxid",)))
    versions = partition_states.select(*PARTITION_KEY, "isr", (until_ns - F.col("time_ns")).alias("lasted_ns"))
    outside = F.when(
        ~(contains("isr", F.col("broker")) & contains("isr", F.col("reference"))), F.col("lasted_ns")
    ).otherwise(0)
    return (
        pairs.select(*_REPLICA, "reference")
        .join(versions, on=list(PARTITION_KEY), how="inner")
        .groupBy(*_REPLICA)
        .agg(F.coalesce(F.sum(outside) / 1e6 >= F.lit(settings.tombstones_seen_ms), F.lit(False)).alias("missed"))
    )


def _pairs(replicas: DataFrame, partition_states: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a replica that is not its partition's reference: the reference, and the offsets both should hold.

    `in_isr` is true, or null.
    """
    members = last_isr(partition_states, topics).withColumn("in_isr", F.lit(True))
    leaders = partition_states.groupBy(*PARTITION_KEY).agg(F.max_by("leader", "zxid").alias("leader"))
    log = F.struct("broker", "log_start_offset", "log_end_offset")
    of_leader = F.when(F.col("broker") == F.col("leader"), F.struct("log_end_offset", "high_watermark"))
    reference = F.min(F.when(F.col("in_isr"), log)).over(Window.partitionBy(*PARTITION_KEY))
    return (
        replicas.select(*_REPLICA, "log_start_offset", "log_end_offset", "high_watermark")
        .join(members, on=_REPLICA, how="left")
        .join(leaders, on=list(PARTITION_KEY), how="left")
        .withColumn("first", reference)
        .withColumn("leading", F.max(of_leader).over(Window.partitionBy(*PARTITION_KEY)))
        .where(F.col("broker") != F.col("first.broker"))
        .select(
            *_REPLICA,
            "in_isr",
            "log_end_offset",
            "leading",
            F.col("first.broker").alias("reference"),
            F.col("first.log_end_offset").alias("reference_end_offset"),
            F.greatest("log_start_offset", "first.log_start_offset").alias("from_offset"),
            F.least("log_end_offset", "first.log_end_offset").alias("to_offset"),
        )
    )


def _still_to_fetch() -> Column:
    """Whether the two logs of an internal topic's partition differ only by uncommitted records of its leader."""
    longer = F.greatest("log_end_offset", "reference_end_offset")
    committed = F.coalesce("leading.high_watermark", F.lit(0))
    return (
        F.col("topic").startswith("__")
        & (longer <= F.col("leading.log_end_offset"))
        & (committed <= F.col("to_offset"))
    )


def _described(side: str) -> Column:
    return F.when(F.col(side).isNull(), "nothing").otherwise(
        phrase("{value} of epoch {epoch}", value=F.col(f"{side}.value"), epoch=F.col(f"{side}.leader_epoch"))
    )


PLUGIN: type[Check] = LogMatching
