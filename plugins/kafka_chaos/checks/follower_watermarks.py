"""follower-watermarks: a follower takes over the high watermark that comes with the records it copies.

Every answer to a follower's fetch carries the leader's high watermark, and the follower raises its own to it, up to its
log end (Kafka's `ReplicaFetcherThread.processPartitionData`). So a follower that has copied a record knows at least
what its leader called committed when it wrote that record. A follower that knows less serves consumers less when it
leads, until the whole ISR has fetched again. The promise is about the order of events, so it holds on a slow machine
too. A follower that ends just after it has copied is not judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Check, Settings, Subject

LIVED_NS = 1_000_000_000
"""A follower that logs for so long after it has copied a record has taken note of what came with it."""


class FollowerWatermarks(Check):
    """What each follower knew to be committed, beside what its leader knew when it wrote what was copied last."""

    name: ClassVar[str] = "follower-watermarks"
    title: ClassVar[str] = "follower-watermarks"
    promise: ClassVar[str] = (
        "A follower that has copied a record knows the high watermark that its leader had when it wrote it "
        "(ReplicaFetcherThread.processPartitionData)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = rows_of("follower_watermarks", "followers that copied records")
    reads: ClassVar[tuple[str, ...]] = ("follower_watermarks",)
    fields: ClassVar[tuple[str, ...]] = ("hw.follower",)
    """Kafka logs the high watermarks of leaders only."""

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a follower and leader epoch."""
        told = F.least(F.col("leader_high_watermark"), F.col("last_offset") + 1)
        rows = (
            facts["follower_watermarks"]
            .withColumn("told", told)
            .where(F.col("lived_ns") - F.col("time_ns") >= LIVED_NS)
            .where(F.coalesce("high_watermark", F.lit(0)) < F.col("told"))
        )
        return finding(
            rows,
            self.name,
            offset="told",
            message=phrase(
                "A follower takes over its leader's high watermark: broker {broker}, which follows broker "
                "{leader} in epoch {leader_epoch}, has copied {topic}-{partition} up to {last_offset}, when the "
                "leader's was {leader_high_watermark}, and its own was never higher than {known}.",
                known=F.coalesce("high_watermark", F.lit(0)),
            ),
            evidence=F.array(
                event(
                    "follower_watermarks",
                    "broker",
                    "incarnation",
                    "seq",
                    "last_offset",
                    "leader",
                    "leader_high_watermark",
                    "high_watermark",
                )
            ),
        )


PLUGIN: type[Check] = FollowerWatermarks
