"""I11: the high watermark never passes the log end, goes back, or covers a record that is then truncated.

Below it everything is in every member of the ISR. So it never passes the log's end, never goes back under one leader,
and nothing is truncated below it unless an unclean election gave it up (Kafka's `AbstractFetcherThread` only warns).
"""

from typing import ClassVar

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.findings import event, finding, severity, with_unclean_election
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.contracts.checks import Allowance, Check, Settings

_LINE = ("broker", "incarnation", "seq")


class HighWatermark(Check):
    """Every change of a high watermark, every new leadership, every truncation, in each broker's own order."""

    name: ClassVar[str] = "I11"
    title: ClassVar[str] = "I11 high-watermark"
    promise: ClassVar[str] = (
        "The high watermark never passes the log end nor goes back under one leader, and nothing below it is truncated."
    )
    needs: ClassVar[tuple[str, ...]] = ("high_watermarks",)
    fields: ClassVar[tuple[str, ...]] = ("hw.log_end_offset", "truncate.high_watermark")
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", "leadership_claims", "truncations")
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a line of a state-change log."""
        marks = facts["high_watermarks"]
        claims = facts["leadership_claims"]
        return (
            self._past_the_end(marks, claims)
            .unionByName(self._gone_back(marks, claims))
            .unionByName(self._truncated(facts, settings))
        )

    def _past_the_end(self, marks: DataFrame, claims: DataFrame) -> DataFrame:
        columns = [*PARTITION_KEY, *_LINE, "leader_epoch", "role", "log_end_offset"]
        positions = marks.select(*columns, F.col("new").alias("high_watermark"), F.lit("high_watermarks").alias("fact"))
        positions = positions.unionByName(
            claims.select(*columns, "high_watermark", F.lit("leadership_claims").alias("fact"))
        )
        rows = positions.where(F.col("high_watermark") > F.col("log_end_offset"))
        return finding(
            rows,
            self.name,
            offset="high_watermark",
            message=(
                "The high watermark never passes the log end: on broker {broker}, {role} of {topic}-{partition} in "
                "epoch {leader_epoch}, it is {high_watermark} and the log ends at {log_end_offset}."
            ),
            evidence=F.array(
                F.to_json(F.struct("fact", *_LINE, "role", "leader_epoch", "high_watermark", "log_end_offset"))
            ),
        )

    def _gone_back(self, marks: DataFrame, claims: DataFrame) -> DataFrame:
        """A rise from below the start of this leadership, or from below the end of an earlier rise: two overlap.

        Two threads may log their rises in any order, so a line that continues the one before it is no proof.
        """
        columns = [*PARTITION_KEY, *_LINE, "leader_epoch"]
        key = [*PARTITION_KEY, "broker", "incarnation", "leader_epoch"]
        began = claims.where(F.col("role") == "leader").select(*columns, F.col("high_watermark").alias("began"))
        as_told = in_order(*key, by=("seq",))
        earlier = in_order(*key, by=("old", "new", "seq")).rowsBetween(Window.unboundedPreceding, -1)
        rows = (
            marks.where(F.col("role") == "leader")
            .select(*columns, "old", "new")
            .unionByName(began, allowMissingColumns=True)
            .withColumn("began", F.max("began").over(as_told))
            .withColumn("goes_on", F.col("old") == F.lag("new").over(as_told))
            .withColumn("overlapped", F.max("new").over(earlier))
            .withColumn("highest", F.greatest("began", F.expr("if(goes_on, old, overlapped)")))
            .where(F.least("old", "new") < F.col("highest"))
            .withColumn("reached", F.when(F.col("new") < F.col("highest"), F.col("new")).otherwise(F.col("old")))
        )
        return finding(
            rows,
            self.name,
            offset="reached",
            message=(
                "The high watermark never goes back under one leader: broker {broker}, leader of {topic}-{partition} "
                "in epoch {leader_epoch}, went from {highest} to {reached}."
            ),
            evidence=F.array(event("high_watermarks", *_LINE, "leader_epoch", "highest as before", "old", "new")),
        )

    def _truncated(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        # Where the leader's log starts within a batch, an empty follower starts again at the first offset of the batch.
        begins_anew = (F.col("reason") == "full") & (F.col("high_watermark") == F.col("log_end_offset"))
        below = facts["truncations"].where((F.col("to_offset") < F.col("high_watermark")) & ~begins_anew)
        rows = with_unclean_election(below, facts["leader_epochs"], settings, since="asked_epoch", until="leader_epoch")
        return finding(
            rows,
            self.name,
            offset="to_offset",
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=(
                "Nothing below the high watermark is truncated: broker {broker} cut {topic}-{partition} from "
                "{log_end_offset} to {to_offset} in epoch {leader_epoch} with its high watermark at {high_watermark} "
                "(reason: {reason})."
            ),
            evidence=F.array(
                event(
                    "truncations",
                    *_LINE,
                    "log_end_offset",
                    "to_offset",
                    "high_watermark",
                    "reason",
                    "asked_epoch",
                    "answer_epoch",
                    "answer_end_offset",
                )
            ),
        )


PLUGIN: type[Check] = HighWatermark
