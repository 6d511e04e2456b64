"""recovery-points: a log that is loaded reaches its recovery point.

The checkpoint says up to where a log was synced (Kafka's `UnifiedLog.recoveryPoint`, `LogManager.checkpointLogRecovery-
Offsets`); a truncation below it lowers it first. So nothing before it is lost, by a power loss neither: a log that ends
before it was not synced when the checkpoint said so, and recovery leaves out what it should look at. Where a fault
damages files on purpose, nothing is known.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.disturbances import may_disturb
from harness.analysis.check_helpers.findings import event, finding
from harness.contracts.checks import Check, Settings
from harness.contracts.faults import Disturbance


class RecoveryPoints(Check):
    """Every log that was loaded, beside the checkpoint of its recovery point."""

    name: ClassVar[str] = "recovery-points"
    title: ClassVar[str] = "recovery-points"
    promise: ClassVar[str] = (
        "A recovery point is never past what was synced: at a start every log reaches it "
        "(LogManager.checkpointLogRecoveryOffsets)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    reads: ClassVar[tuple[str, ...]] = ("log_loads", "fault_windows")
    fields: ClassVar[tuple[str, ...]] = ("recovery.recovery_point",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a broker's life and partition."""
        damaged = (
            facts["fault_windows"]
            .where(may_disturb(Disturbance.FILES))
            .select("run_id", F.explode("targets").alias("target"))
            .select("run_id", F.col("target").try_cast("int").alias("broker"))
            .distinct()
        )
        rows = facts["log_loads"].where(F.col("recovery_point") > F.col("log_end_offset"))
        return finding(
            rows.join(damaged, on=["run_id", "broker"], how="left_anti"),
            self.name,
            offset="recovery_point",
            message=(
                "A recovery point is never past what was synced: broker {broker} found that {topic}-{partition} ends "
                "at {log_end_offset}, and its checkpoint says that it is synced up to {recovery_point}."
            ),
            evidence=F.array(
                event("log_loads", "broker", "incarnation", "seq", "log_end_offset", "recovery_point", "clean")
            ),
        )


PLUGIN: type[Check] = RecoveryPoints
