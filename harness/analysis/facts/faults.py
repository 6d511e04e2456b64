"""When each fault was intended, injected, confirmed and healed, and its targets."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform
from harness.analysis.tables.schemas import FAULT_WINDOWS
from harness.store.history import InjectionStep

_VERDICTS = (InjectionStep.CONFIRMED, InjectionStep.MISMATCH, InjectionStep.INCONCLUSIVE, InjectionStep.FAILED)
_JUDGED = [step.value for step in _VERDICTS]


def fault_windows(journal: DataFrame) -> DataFrame:
    """One row an injection; of several lines of one step the first counts, of several targets the last.

    A postponement is not counted: a fault that was only postponed has no row.
    """
    step, time_ns = F.col("step"), F.col("time_ns")
    judged = F.when(step.isin(_JUDGED), time_ns)
    return conform(
        journal.where(F.col("injection").isNotNull() & ~step.eqNullSafe(InjectionStep.POSTPONED.value))
        .groupBy("run_id", "injection", "fault")
        .agg(
            F.max_by("targets", F.when(F.size("targets") > 0, time_ns)).alias("targets"),
            F.min_by("parameters", time_ns).alias("parameters"),
            F.min(F.when(step == InjectionStep.INTENDED.value, time_ns)).alias("intended_ns"),
            F.min(F.when(step == InjectionStep.INJECTED.value, time_ns)).alias("injected_ns"),
            F.min(judged).alias("confirmed_ns"),
            F.min(F.when(step == InjectionStep.HEALED.value, time_ns)).alias("healed_ns"),
            F.min_by("step", judged).alias("step"),
            F.min_by("detail", judged).alias("detail"),
        ),
        FAULT_WINDOWS,
    )
