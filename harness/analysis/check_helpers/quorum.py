"""Which leaders of a quorum of controllers were replaced, and when?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.contracts.checks import Settings, Subject

_TERM = ("run_id", "broker", "incarnation", "seq", "controller_epoch", "time_ns", "led_until_ns")


def replaced_leaders(settings: Settings, terms: DataFrame, windows: DataFrame) -> DataFrame:
    """One row a leader after which another broker was elected, at `since_ns`, by its own log.

    One whose clock a fault has set is left out, because its log may tell another time; so are all where the quorum's
    time-out is not known.
    """
    of_clocks = windows.where(F.col("fault") == "clock").select("run_id", F.explode("targets").alias("target"))
    clocks = of_clocks.select("run_id", F.col("target").try_cast("int").alias("broker"))
    later = terms.select(
        "run_id",
        F.col("broker").alias("next_broker"),
        F.col("controller_epoch").alias("next_epoch"),
        F.col("time_ns").alias("since_ns"),
    )
    return (
        terms.where(F.lit(settings.quorum_fetch_timeout_ms) != 0)
        .join(clocks, on=["run_id", "broker"], how="left_anti")
        .join(later, on="run_id", how="inner")
        .where((F.col("next_epoch") > F.col("controller_epoch")) & (F.col("next_broker") != F.col("broker")))
        .groupBy(*_TERM)
        .agg(F.min(F.struct("since_ns", "next_epoch", "next_broker")).alias("next"))
        .select(*_TERM, "next.*")
    )


def _pieces(settings: Settings, terms: DataFrame, windows: DataFrame) -> DataFrame:
    return replaced_leaders(settings, terms, windows).select(
        "run_id",
        F.concat(F.lit("broker "), "broker").alias("place"),
        F.lit(1).cast("bigint").alias("number"),
        F.lit(0).cast("bigint").alias("unseen"),
    )


REPLACED_LEADERS = Subject(
    facts=("quorum_terms", "fault_windows"), pieces=_pieces, what="leaders of the quorum that were replaced"
)
