"""last-stable-offset: it is the start of the first open transaction or the high watermark, and never goes back.

Consumers with read_committed read up to it. One that is too high shows them what may be aborted; one that stays behind
a transaction that has ended stops them for ever (KIP-98, KIP-664). A transaction is aborted when its time-out is over,
so none is open for much longer.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window, WindowSpec

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import ID_KEY, OPEN, OfTransactions, closed, on_furthest, parts, steps
from harness.analysis.frames import PARTITION_KEY, in_order, null_if_unknown
from harness.contracts.checks import Check, Settings

_SLACK_MS = 60_000
"""Coordinators look for what has timed out every ten seconds, and the next one has to load first."""


class StableOffset(OfTransactions):
    """Every change of a last stable offset, the last one of each leader, and how long transactions were open."""

    name: ClassVar[str] = "last-stable-offset"
    title: ClassVar[str] = "last-stable-offset"
    promise: ClassVar[str] = (
        "The last stable offset is the first open transaction or the high watermark and never goes back in a leader "
        "epoch; no transaction outlives its time-out (KIP-98, KIP-664)."
    )
    reads: ClassVar[tuple[str, ...]] = (*OfTransactions.reads, "stable_offsets", "leadership_claims")
    judges_without: ClassVar[tuple[str, ...]] = (
        *OfTransactions.judges_without,
        "lso",
        "become_leader",
        "become_follower",
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a wrong change, an offset that an ended transaction holds back, or one open for too long."""
        return self._moves(facts, settings).unionByName(self._overdue(facts, settings))

    def _moves(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        changes = facts["stable_offsets"].where(F.col("role") == "leader")
        of_leader = in_order(*PARTITION_KEY, "incarnation", "leader_epoch", by=("seq",))
        unstable = F.col("first_unstable_offset")
        stable = F.when(unstable >= 0, F.least(unstable, "high_watermark")).otherwise(F.col("high_watermark"))
        wrong = F.when(F.col("new") < F.lag("new").over(of_leader), "it goes back").when(
            F.col("new") != stable, "that is neither the first open transaction nor the high watermark"
        )
        moved = changes.withColumn("wrong", wrong).where(F.col("wrong").isNotNull())
        rows = moved.unionByName(self._stuck(facts)).unionByName(self._undecided(changes, of_leader, facts))
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            offset="new",
            severity=F.col("severity"),
            message=(
                "The last stable offset is the first open transaction or the high watermark: that of "
                "{topic}-{partition} on broker {broker} went from {old} to {new} in leader epoch {leader_epoch}, and "
                "{wrong}."
            ),
            evidence=F.array(
                event(
                    "stable_offsets",
                    *("broker", "incarnation", "seq", "old", "new", "high_watermark", "first_unstable_offset"),
                )
            ),
        )

    def _stuck(self, facts: dict[str, DataFrame]) -> DataFrame:
        """The last change in the life that led last, where the transaction that holds it back has ended.

        While it is held back, the replica logs each change. A later life, or a replica that was copied anew, logs none
        if nothing holds it back there.
        """
        changes, claims = facts["stable_offsets"], facts["leadership_claims"]
        last_leaders = (
            claims.where(F.col("role") == "leader")
            .groupBy(*PARTITION_KEY)
            .agg(F.max_by("incarnation", "time_ns").alias("incarnation"))
        )
        anew = claims.where(F.col("previous_leader_epoch") < 0).select(*PARTITION_KEY, "incarnation", "seq")
        of_life = in_order(*PARTITION_KEY, "incarnation", by=("seq",))
        ended = closed(facts).select(
            *PARTITION_KEY, F.col("first_offset").alias("new"), F.col("offset").alias("marker_offset")
        )
        committed = facts["replicas"].select(*PARTITION_KEY, "broker", F.col("high_watermark").alias("committed"))
        return (
            changes.unionByName(anew, allowMissingColumns=True)
            .withColumn("following", F.lead("seq").over(of_life))
            .where(F.col("following").isNull() & (F.col("new") < F.col("high_watermark")))
            .join(last_leaders, on=[*PARTITION_KEY, "incarnation"], how="left_semi")
            .join(ended, on=[*PARTITION_KEY, "new"], how="inner")
            .join(committed, on=[*PARTITION_KEY, "broker"], how="inner")
            .where(F.col("marker_offset") < F.col("committed"))
            .withColumn("wrong", F.lit("it stays there, although that transaction has ended"))
            .select(*changes.columns, "wrong")
        )

    def _undecided(self, changes: DataFrame, of_leader: WindowSpec, facts: dict[str, DataFrame]) -> DataFrame:
        """The first change of each leader that passes a transaction whose marker was not committed then."""
        starts = closed(facts).select(
            *PARTITION_KEY, F.col("first_offset").alias("at"), F.col("offset").alias("marker_offset")
        )
        up_to_it = in_order(*PARTITION_KEY, by=("at",))
        return (
            changes.withColumn("at", F.col("new") - 1)
            .unionByName(starts, allowMissingColumns=True)
            .withColumn("latest_marker", F.max("marker_offset").over(up_to_it))
            .where(F.col("latest_marker") >= F.col("high_watermark"))
            .withColumn("rank", F.row_number().over(of_leader))
            .where(F.col("rank") == 1)
            .withColumn("wrong", F.lit("that passes a transaction whose marker was not committed"))
            .select(*changes.columns, "wrong")
        )

    def _overdue(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """The transactions that were open when the log of their coordinator ended, long after their time-out.

        A record that may not have been stored shows an open transaction only if the producer has written in one.
        """
        transitions = steps(facts["transactions"])
        last = F.max("timestamp_ms").over(Window.partitionBy("run_id", "partition"))
        following = F.lead("offset").over(in_order(*ID_KEY, by=("offset",)))
        open_parts = parts(facts["transactional_batches"], facts["markers"]).where(F.col("marker").isNull())
        writers = on_furthest(open_parts, facts["replicas"]).select("run_id", "producer_id").distinct()
        rows = (
            transitions.withColumns({"now_ms": last, "following": following})
            .where((F.col("state") == OPEN) & F.col("following").isNull())
            .withColumn("open_ms", F.col("now_ms") - null_if_unknown("started_ms"))
            .where(F.col("open_ms") > F.col("timeout_ms") + _SLACK_MS)
            .join(writers.withColumn("writes", F.lit(True)), on=["run_id", "producer_id"], how="left")
            .where(F.col("writes") | ~F.col("doubtful"))
        )
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "No transaction outlives its time-out: that of {transactional_id} was open for {open_ms} ms when the "
                "log of its coordinator ended, and its time-out is {timeout_ms} ms."
            ),
            evidence=F.array(
                event("transactions", "partition", "offset", "transactional_id", "started_ms", "timeout_ms", "now_ms")
            ),
        )


PLUGIN: type[Check] = StableOffset
