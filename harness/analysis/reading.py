"""Steps of readers that jump ahead over records that others read, or go back: within one poll or from poll to poll."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import event
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.contracts.checks import Severity

MAY_BE_MOVED = ("subscribe", "")
"""Modes of a poll in which a rebalance may move the reader; other clients' histories need not say the mode."""


def skips(facts: dict[str, DataFrame], *, within_poll: bool) -> DataFrame:
    """The steps over a record that somebody read and that is not deleted, with the first such offset as `skipped`.

    The record before was read too, so the next offset that anybody read follows it among all offsets that were read.
    """
    ahead = _of(facts["poll_steps"], within_poll).where(F.col("offset") > F.col("previous_offset") + 1)
    jumped = ahead.select(*PARTITION_KEY).distinct()
    known = (
        facts["polls"]
        .join(jumped.hint("shuffle_hash"), on=list(PARTITION_KEY), how="left_semi")
        .select(*PARTITION_KEY, "offset")
        .distinct()
    )
    following = known.select(
        *PARTITION_KEY,
        F.col("offset").alias("previous_offset"),
        F.lead("offset").over(in_order(*PARTITION_KEY, by=("offset",))).alias("skipped"),
    )
    start = facts["replicas"].groupBy(*PARTITION_KEY).agg(F.min("log_start_offset").alias("log_start_offset"))
    return (
        ahead.join(following, on=[*PARTITION_KEY, "previous_offset"], how="inner")
        .join(start, on=list(PARTITION_KEY), how="left")
        .where(F.col("skipped") < F.col("offset"))
        .where(F.coalesce(F.col("skipped") >= F.col("log_start_offset"), F.lit(True)))
    )


def regressions(facts: dict[str, DataFrame], *, within_poll: bool) -> DataFrame:
    """The steps to an offset that the reader has passed."""
    return _of(facts["poll_steps"], within_poll).where(F.col("offset") <= F.col("previous_offset"))


def _of(steps: DataFrame, within_poll: bool) -> DataFrame:
    same = F.col("index") == F.col("previous_index")
    return steps.where(same if within_poll else ~same)


def shown() -> Column:
    """The two records of a step, as evidence."""
    before = event(
        "polls", "process", "mode", F.col("previous_index").alias("index"), F.col("previous_offset").alias("offset")
    )
    return F.array(before, event("polls", "process", "mode", "index", "offset", "leader_epoch"))


def unless_subscribed(severity: Column) -> Column:
    """A reader that subscribes may be moved by a rebalance, which no history tells: then it is a note."""
    return F.when(F.col("mode").isin(*MAY_BE_MOVED), Severity.NOTE.value).otherwise(severity)
