"""Which leaders of a quorum of controllers were replaced, and when?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.contracts.checks import Settings, Subject

RESIGNS_WITHIN_NS = 20_000_000_000
"""How much longer than its time-outs a leader may take on a busy machine."""
_TERM = ("run_id", "broker", "incarnation", "seq", "controller_epoch", "time_ns", "led_until_ns", "resigned")


def replaced_leaders(settings: Settings, terms: DataFrame, windows: DataFrame) -> DataFrame:
    """One row a leader after which another broker was elected, at `since_ns`; it may lead until `to_ns`.

    Left out are leaders whose process ended in time without resigning, elections whose order their epochs contradict,
    brokers whose clock a fault has set, as their logs may show other instants, and all if the quorum's time-outs are
    not known.
    """
    of_clocks = windows.where(F.col("fault") == "clock").select("run_id", F.explode("targets").alias("target"))
    clocks = of_clocks.select("run_id", F.col("target").try_cast("int").alias("broker"))
    known = terms.where(F.lit(settings.quorum_resigns_ms) != 0)
    reliable = known.join(clocks, on=["run_id", "broker"], how="left_anti")
    later = reliable.select(
        "run_id",
        F.col("broker").alias("next_broker"),
        F.col("controller_epoch").alias("next_epoch"),
        F.col("time_ns").alias("since_ns"),
    )
    is_next = (F.col("next_epoch") > F.col("controller_epoch")) & (F.col("next_broker") != F.col("broker"))
    may_take_ns = F.lit(settings.quorum_resigns_ms).cast("bigint") * 1_000_000 + RESIGNS_WITHIN_NS
    return (
        reliable.join(later, on="run_id", how="inner")
        .where(is_next & (F.col("since_ns") > F.col("time_ns")))
        .groupBy(*_TERM)
        .agg(F.min(F.struct("since_ns", "next_epoch", "next_broker")).alias("next"))
        .select(*_TERM, "next.*")
        .withColumn("to_ns", F.col("since_ns") + may_take_ns)
        .where(F.col("resigned") | (F.col("led_until_ns") > F.col("to_ns")))
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
