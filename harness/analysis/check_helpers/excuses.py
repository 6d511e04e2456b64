"""How far an excuse reaches: what a power loss takes is of partitions on that broker, and was there before."""

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
    """Return the findings of these checks; what no power loss can have taken is a violation.

    That is what was asked for after the last cut (an answer may come later, being under way), and what is in a
    partition none of whose replicas was cut off. Where that cannot be told the excuse stands: of runs without a journal
    of faults, of partitions with unknown replicas, and of findings that name no partition or no instant.
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
    faults = registry.names(registry.Kind.FAULT)
    return [name for name in faults if issubclass(registry.fault(name).Parameters, MayLoseData)]


def _cuts(fault_windows: DataFrame) -> DataFrame:
    """Return the windows in which records may have been taken, with the instant by which they were: `cut_ns`.

    A fault that failed may have hit some of its targets before: all that is known is that it was over when its effect
    was judged, at the latest when it was healed. Where the journal ends before, it may have hit them at any time.
    """
    begun = F.coalesce("injected_ns", "intended_ns").isNotNull()
    over = F.coalesce("injected_ns", "confirmed_ns", "healed_ns", F.lit(_NEVER_NS))
    return fault_windows.where(F.col("fault").isin(forfeiting()) & begun).withColumn("cut_ns", over)


def _reach(cuts: DataFrame, partition_states: DataFrame) -> DataFrame:
    """One row a partition whose replicas are known: when the power of one of them was cut last, null for never."""
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
