"""Which findings can a power loss excuse? Those of partitions on that broker, on records from before the loss."""

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import POWER_LOSS
from harness.analysis.frames import PARTITION_KEY
from harness.contracts import registry
from harness.contracts.checks import Check, Severity
from harness.contracts.faults import MayLoseData

_NEVER_NS = (1 << 63) - 1


def within_power_losses(findings: DataFrame, facts: dict[str, DataFrame], checks: Iterable[Check]) -> DataFrame:
    """Return the findings of these checks; a finding that no power loss can explain becomes a violation.

    Those are findings on operations that began after the last power loss, and on partitions without a replica on the
    brokers that lost power. The excuse stays where this is unknown: in runs without a journal of faults, for partitions
    with unknown replicas, and for findings without a partition or an instant.
    """
    stored_anywhere = [check.name for check in checks if any(each.anywhere for each in check.excused_by)]
    journals = facts["fault_windows"].select("run_id").distinct().withColumn("has_journal", F.lit(True))
    cuts = _cuts(facts["fault_windows"])
    last = cuts.groupBy("run_id").agg(F.max("cut_ns").alias("last_cut_ns"))
    rows = (
        findings.join(journals, on="run_id", how="left")
        .join(last, on="run_id", how="left")
        .join(_reach(cuts, facts["partition_states"]), on=list(PARTITION_KEY), how="left")
    )
    anywhere = F.col("check").isin(stored_anywhere) | F.col("has_replicas").isNull()
    of_partition = F.when(anywhere, F.col("last_cut_ns")).otherwise(F.col("last_cut_of_partition_ns"))
    before = of_partition.isNotNull() & F.coalesce(F.col("at_ns") <= of_partition, F.lit(True))
    outside = F.coalesce((F.col("excuse") == POWER_LOSS.reason) & F.col("has_journal") & ~before, F.lit(False))
    severity = F.when(outside, Severity.VIOLATION.value).otherwise(F.col("severity"))
    excuse = F.when(~outside, F.col("excuse"))
    return rows.withColumns({"severity": severity, "excuse": excuse}).select(*findings.columns)


def forfeiting() -> list[str]:
    """Return the names of the faults that can take committed records away, as their parameters say."""
    return [
        name
        for name, fault in registry.faults().items()
        if issubclass(getattr(fault, "Parameters", object), MayLoseData)
    ]


def _cuts(fault_windows: DataFrame) -> DataFrame:
    """Return the windows of faults that may have removed records, with the latest instant of the removal: `cut_ns`.

    A fault that failed may have hit some of its targets before it failed. It was over when its effect was judged, at
    the latest when it was healed. If the journal ends earlier, it may have hit them at any time.
    """
    begun = F.coalesce("injected_ns", "intended_ns").isNotNull()
    over = F.coalesce("injected_ns", "confirmed_ns", "healed_ns", F.lit(_NEVER_NS))
    return fault_windows.where(F.col("fault").isin(forfeiting()) & begun).withColumn("cut_ns", over)


def _reach(cuts: DataFrame, partition_states: DataFrame) -> DataFrame:
    """One row a partition with known replicas: when one of its brokers last lost power, null for never."""
    replicas = partition_states.select(
        *PARTITION_KEY, F.explode(F.coalesce("assignment", "isr")).alias("broker")
    ).distinct()
    cut = cuts.select("run_id", F.explode("targets").alias("target"), "cut_ns")
    of_brokers = cut.select("run_id", F.col("target").try_cast("int").alias("broker"), "cut_ns")
    return (
        replicas.join(of_brokers, on=["run_id", "broker"], how="left")
        .groupBy(*PARTITION_KEY)
        .agg(F.max("cut_ns").alias("last_cut_of_partition_ns"))
        .withColumn("has_replicas", F.lit(True))
    )
