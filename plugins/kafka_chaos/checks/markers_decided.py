"""markers-decided: a marker follows a decision that was stored before, and has its outcome.

A coordinator stores PrepareCommit or PrepareAbort, and sends markers once that is committed, so that any later
coordinator carries out the same decision. A marker without such a record, or before it, may contradict the one that the
next coordinator finds (KIP-98).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import (
    OfTransactions,
    by_partition,
    closed,
    decisions,
    in_whole_logs,
    on_furthest,
)
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.contracts.checks import Check, Settings

_KEY = ("producer_id", "producer_epoch", "result")


class MarkersDecided(OfTransactions):
    """Every marker beside the decisions of its producer."""

    name: ClassVar[str] = "markers-decided"
    title: ClassVar[str] = "markers-decided"
    promise: ClassVar[str] = (
        "No marker is written before its Prepare record is committed, or with another outcome (KIP-98)."
    )
    reads: ClassVar[tuple[str, ...]] = (*OfTransactions.reads, "marker_writes")
    judges_without: ClassVar[tuple[str, ...]] = (*OfTransactions.judges_without, "txn_marker")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a marker without a decision, and one a marker that was written before its decision."""
        transactions = facts["transactions"]
        markers = on_furthest(facts["markers"], facts["replicas"])
        decided = decisions(transactions)
        undecided = markers.join(decided, on=["run_id", *_KEY], how="left_anti").withColumn(
            "wrong", F.lit("no Prepare record of that outcome is in the transaction log")
        )
        early = self._early(facts, decided).withColumn("wrong", F.lit("its Prepare record was stored later"))
        rows = in_whole_logs(undecided.unionByName(early, allowMissingColumns=True), transactions)
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "A marker follows its decision: {topic}-{partition} has a marker at offset {offset} with which "
                "producer {producer_id} of epoch {producer_epoch} ends in {result}, but {wrong}."
            ),
            evidence=F.array(
                event(
                    "markers",
                    *("broker", "topic", "partition", "offset", *_KEY, "coordinator_epoch"),
                ),
                F.when(F.col("decided").isNotNull(), event("transactions", "decided", "written_ns")),
            ),
        )

    def _early(self, facts: dict[str, DataFrame], decided: DataFrame) -> DataFrame:
        """The closing markers that their leader wrote before the coordinator had stored as many such decisions.

        The first marker that closes a part is not of an earlier decision than the first, and so on. A coordinator of a
        later epoch is left out: it reads the decision in the log, which may be before the older one notes it as stored.
        What a deposed leader wrote at the offset of a marker is gone, and may be of an earlier decision: the last
        write counts.
        """
        number = [*PARTITION_KEY, *_KEY, "number"]
        of_partition = in_order(*PARTITION_KEY, *_KEY, by=("decided.offset",))
        known = by_partition(
            decided.withColumn("decided", F.struct("transactional_id", "offset", "state", "leader_epoch", "told_ns"))
        ).withColumn("number", F.row_number().over(of_partition))
        in_turn = in_order(*PARTITION_KEY, *_KEY, by=("offset",))
        closing = closed(facts).withColumn("number", F.row_number().over(in_turn))
        written = (
            facts["marker_writes"].groupBy(*PARTITION_KEY, "offset", *_KEY).agg(F.max("time_ns").alias("written_ns"))
        )
        return (
            closing.join(known.select(*number, "decided"), on=number, how="inner")
            .join(written, on=[*PARTITION_KEY, "offset", *_KEY], how="inner")
            .where(F.col("written_ns") < F.col("decided.told_ns"))
            .where(F.col("coordinator_epoch") <= F.col("decided.leader_epoch"))
        )


PLUGIN: type[Check] = MarkersDecided
