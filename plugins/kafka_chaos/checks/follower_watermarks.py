"""follower-watermarks: a follower takes over the high watermark and the log start that come with what it copies.

Every answer to a follower's fetch carries the leader's high watermark and where its log starts. The follower raises its
own high watermark to it, up to its log end, and deletes what its leader has deleted (Kafka's
`ReplicaFetcherThread.processPartitionData`, KIP-107). So a follower that has copied a record knows at least what its
leader called committed, and deleted, when it wrote that record. A follower that knows less serves consumers less when
it leads, until the whole ISR has fetched again, or records that were deleted. The promise is about the order of events,
so it holds on a slow machine too. The start of a follower's log counts only until the follower writes records of
another epoch, because its own retention moves the start later. A follower that ends just after it has copied is not
judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Check, Settings, Subject

LIVED_NS = 1_000_000_000
"""A follower that logs for so long after it has copied a record has taken note of what came with it."""


class FollowerWatermarks(Check):
    """What each follower knew to be committed and deleted, beside what its leader knew when it wrote the last copy."""

    name: ClassVar[str] = "follower-watermarks"
    title: ClassVar[str] = "follower-watermarks"
    promise: ClassVar[str] = (
        "A follower that has copied a record knows the high watermark and the log start that its leader had when it "
        "wrote it (ReplicaFetcherThread.processPartitionData, KIP-107)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = rows_of("follower_watermarks", "followers that copied records")
    reads: ClassVar[tuple[str, ...]] = ("follower_watermarks",)
    fields: ClassVar[tuple[str, ...]] = ("hw.follower",)
    """Kafka logs the high watermarks of leaders only."""

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a follower and leader epoch, for each of the two."""
        lived = facts["follower_watermarks"].where(F.col("lived_ns") - F.col("time_ns") >= LIVED_NS)
        marks = lived.where(F.col("leader_high_watermark").isNotNull()).withColumns(
            {
                "told": F.least(F.col("leader_high_watermark"), F.col("last_offset") + 1),
                "known": F.coalesce("high_watermark", F.lit(0)),
            }
        )
        starts = lived.where(~F.col("disk_failed")).withColumns(
            {"told": F.col("leader_log_start_offset"), "known": F.col("log_start_offset")}
        )
        return self._finding(
            marks,
            "A follower takes over its leader's high watermark",
            "leader's was {leader_high_watermark}, and its own was never higher than {known}",
            "leader_high_watermark",
            "high_watermark",
        ).unionByName(
            self._finding(
                starts,
                "A follower deletes what its leader has deleted",
                "leader's log started at {told}, and its own at {known} until it wrote under another epoch",
                "leader_log_start_offset",
                "log_start_offset",
            )
        )

    def _finding(self, rows: DataFrame, rule: str, shown: str, *columns: str) -> DataFrame:
        """One finding a row whose `known` is less than it was `told`."""
        return finding(
            rows.where(F.col("known") < F.col("told")),
            self.name,
            offset="told",
            message=(
                f"{rule}: broker {{broker}}, which follows broker {{leader}} in epoch {{leader_epoch}}, has copied "
                f"{{topic}}-{{partition}} up to {{last_offset}}, when the {shown}."
            ),
            evidence=F.array(
                event("follower_watermarks", "broker", "incarnation", "seq", "last_offset", "leader", *columns)
            ),
        )


PLUGIN: type[Check] = FollowerWatermarks
