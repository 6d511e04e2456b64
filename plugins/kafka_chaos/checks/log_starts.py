"""log-starts: after a clean stop a log starts where it did before.

Retention and DeleteRecords move the start of a log, and a clean stop writes it to a checkpoint (Kafka's
`LogManager.checkpointLogStartOffsets`, KIP-107). A log that starts earlier serves what was deleted, and one that starts
later has lost records that were not. After a crash the checkpoint may be older, as Kafka writes it once a minute: that
is not judged. Within one life the check step-by-step follows every move of the start.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.contracts.checks import Check, Settings


class LogStarts(Check):
    """Where every log starts after a clean stop, beside where it started before."""

    name: ClassVar[str] = "log-starts"
    title: ClassVar[str] = "log-starts"
    promise: ClassVar[str] = (
        "The start of a log does not move over a clean restart (KIP-107, LogManager.checkpointLogStartOffsets)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    reads: ClassVar[tuple[str, ...]] = ("log_loads",)
    fields: ClassVar[tuple[str, ...]] = ("recovery.clean",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a broker's life and partition."""
        what = F.when(
            F.col("log_start_offset") < F.col("previous_log_start_offset"), "Deleted records do not return"
        ).otherwise("Records that nothing deleted stay")
        return finding(
            facts["log_loads"]
            .where(F.col("clean") & F.col("closed") & (F.col("log_start_offset") != F.col("previous_log_start_offset")))
            .withColumn("what", what),
            self.name,
            offset="log_start_offset",
            message=(
                "{what}: after a clean stop of broker {broker}, its log of "
                "{topic}-{partition} starts at {log_start_offset}, and started at {previous_log_start_offset} before."
            ),
            evidence=F.array(
                event(
                    "log_loads",
                    "broker",
                    "incarnation",
                    "seq",
                    "log_start_offset",
                    "previous_incarnation",
                    "previous_log_start_offset",
                )
            ),
        )


PLUGIN: type[Check] = LogStarts
