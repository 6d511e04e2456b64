"""clean-stops: a log is trusted at a start only if the broker had stopped cleanly before.

A broker that stops syncs and closes its logs, and marks the data directory last (Kafka's `LogManager.shutdown`). The
next start takes the marker away (`LogManager.loadLogs`, KAFKA-10471), so that a crash after it is one. What was trusted
without that is read without a look at its batches. A life that ended before it had loaded its logs changes nothing.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.contracts.checks import Check, Settings


class CleanStops(Check):
    """Every log that was loaded as clean, beside the end of the broker's previous process."""

    name: ClassVar[str] = "clean-stops"
    title: ClassVar[str] = "clean-stops"
    promise: ClassVar[str] = (
        "A log is loaded as clean only when the broker's previous process closed its logs (LogManager.loadLogs, "
        "KAFKA-10471)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    reads: ClassVar[tuple[str, ...]] = ("log_loads",)
    fields: ClassVar[tuple[str, ...]] = ("recovery.clean",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a broker's life and partition."""
        return finding(
            facts["log_loads"].where(F.col("clean") & ~F.col("closed")),
            self.name,
            message=(
                "A log is trusted only after a clean stop: broker {broker} loaded {topic}-{partition} as clean when "
                "it started as {incarnation}, and its previous process {previous_incarnation} had ended without "
                "closing that log."
            ),
            evidence=F.array(
                event("log_loads", "broker", "incarnation", "seq", "clean", "previous_incarnation", "closed")
            ),
        )


PLUGIN: type[Check] = CleanStops
