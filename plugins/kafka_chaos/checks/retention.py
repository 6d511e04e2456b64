"""retention: a segment is deleted only when retention allows it and its records are committed.

Retention deletes whole segments from the front of a log (Kafka's `UnifiedLog.deleteOldSegments`): below the start of
the log, by size as long as the log exceeds `retention.bytes` without it, or by age when its youngest record is older
than `retention.ms`; never at or after the high watermark. A broker logs what it deletes, with sizes, timestamps and
limits. How long a segment may stay is not judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Check, Settings, Subject


class Retention(Check):
    """Every segment that retention deleted, beside the limits of its topic."""

    name: ClassVar[str] = "retention"
    title: ClassVar[str] = "retention"
    promise: ClassVar[str] = (
        "Retention deletes a committed segment behind which the log starts, without which the log still has "
        "retention.bytes, or whose youngest record is older than retention.ms (UnifiedLog.deleteOldSegments)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = rows_of("segment_deletions", "segments that retention deleted")
    reads: ClassVar[tuple[str, ...]] = ("segment_deletions",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a segment that was deleted too early."""
        age_ms = F.col("now_ms") - F.col("youngest_ms")
        left_bytes = F.col("log_bytes") - F.col("segment_bytes")
        old = (F.col("retention_ms") >= 0) & (
            (F.col("segment_bytes") == 0) | ((F.col("youngest_ms") >= 0) & (age_ms > F.col("retention_ms")))
        )
        large = (F.col("retention_bytes") >= 0) & (left_bytes >= F.col("retention_bytes"))
        reason, uncommitted = F.col("reason"), F.col("end_offset") > F.col("high_watermark")
        wrong = (
            F.when(uncommitted, phrase("the high watermark is {high_watermark}"))
            .when(
                (reason == "age") & ~old,
                phrase("its youngest record is {age} ms old, and retention.ms is {retention_ms}", age=age_ms),
            )
            .when(
                (reason == "size") & ~large,
                phrase(
                    "without it the log has {left} bytes, and retention.bytes is {retention_bytes}", left=left_bytes
                ),
            )
            .when(
                (reason == "start") & (F.col("end_offset") > F.col("log_start_offset")),
                phrase("the log starts at {log_start_offset}"),
            )
        )
        return finding(
            facts["segment_deletions"].withColumn("wrong", wrong).where(F.col("wrong").isNotNull()),
            self.name,
            offset="base_offset",
            message=(
                "A segment is deleted only when retention allows it: broker {broker} deleted offsets {base_offset} to "
                "{end_offset} of {topic}-{partition} for its {reason}, and {wrong}."
            ),
            evidence=F.array(
                event(
                    "segment_deletions",
                    "broker",
                    "seq",
                    "reason",
                    "base_offset",
                    "end_offset",
                    "high_watermark",
                    "youngest_ms",
                    "now_ms",
                    "retention_ms",
                    "log_bytes",
                    "segment_bytes",
                    "retention_bytes",
                )
            ),
        )


PLUGIN: type[Check] = Retention
