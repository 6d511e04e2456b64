"""I15: a follower truncates exactly to the end of the largest epoch that it shares with its leader.

If it drops too little, it keeps records that the leader never had; if too much, it may drop committed ones. A follower
with epochs asks where its newest ends, drops what came after, and asks again with an older one if it lacks the epoch of
the answer (KIP-101, KIP-279); without any epoch, or an answer, it goes back to its high watermark.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import has_field
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.subjects import rows_of
from harness.broker.wire.sentinels import NO_EPOCH
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.events import NO_OFFSET

_JUDGED = ("epoch", "hw", "out_of_range")


class ExactTruncation(Check):
    """Every truncation of a follower against its own epochs and the leader's answers."""

    name: ClassVar[str] = "I15"
    title: ClassVar[str] = "I15 exact-truncation"
    promise: ClassVar[str] = (
        "A follower truncates exactly to the end of the largest epoch it shares with its leader (KIP-101, KIP-279)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = rows_of("truncations", "truncations")
    fields: ClassVar[tuple[str, ...]] = ("truncate.asked_epoch", "truncate.local_epoch")
    reads: ClassVar[tuple[str, ...]] = ("truncations",)
    assumes: ClassVar[tuple[Assumption, ...]] = (has_field("latest_epoch", "truncations"),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a truncation to another offset, or one for which the leader was not asked."""
        rows = (
            facts["truncations"]
            .where(F.col("reason").isin(*_JUDGED))
            .withColumn("right_offset", _right_offset())
            .where(F.col("right_offset").isNull() | (F.col("to_offset") != F.col("right_offset")))
        )
        return finding(
            rows,
            self.name,
            offset="to_offset",
            message=phrase(
                "A follower truncates to the end of the largest common epoch: broker {broker} cut {topic}-{partition} "
                "from {log_end_offset} to {to_offset} in epoch {leader_epoch} (reason: {reason}), {right_offset}.",
                right_offset=F.when(
                    F.col("right_offset").isNull(),
                    phrase("and had not asked although it knew epoch {latest_epoch}"),
                ).otherwise(phrase("where {right_offset} was right")),
            ),
            evidence=F.array(
                event(
                    "truncations",
                    "broker",
                    "incarnation",
                    "seq",
                    "log_end_offset",
                    "to_offset",
                    "high_watermark",
                    "latest_epoch",
                    "asked_epoch",
                    "answer_epoch",
                    "answer_end_offset",
                    "local_epoch",
                    "local_end_offset",
                )
            ),
        )


def _right_offset() -> Column:
    """Return where the log had to end; null where the follower had to ask and did not (`AbstractFetcherThread`)."""
    end = F.col("log_end_offset")
    unanswered = F.col("answer_end_offset") == NO_OFFSET
    other_history = (F.col("answer_epoch") == NO_EPOCH) | (F.col("local_end_offset") == NO_OFFSET)
    return (
        F.when(F.col("reason") == "out_of_range", F.least("answer_end_offset", end))
        .when(F.col("latest_epoch") == NO_EPOCH, F.col("high_watermark"))
        .when(F.col("asked_epoch") == NO_EPOCH, F.lit(None))
        .when(unanswered, F.col("high_watermark"))
        .when(other_history, F.least("answer_end_offset", end))
        .when(F.col("local_epoch") != F.col("answer_epoch"), F.least("local_end_offset", end))
        .otherwise(F.least("local_end_offset", "answer_end_offset", end))
    )


PLUGIN: type[Check] = ExactTruncation
