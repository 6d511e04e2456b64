"""Findings of failed liveness probes."""

from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.contracts.checks import Assumption, Severity
from harness.store.history import Sign

BUSY_PERCENT = 95
CROWDED_PERCENT = 200
"""Load average as a percentage of the processors: twice as many processes want to run as there are processors."""
LATE_MS = 2000


class OfLiveness:
    """A check of some liveness probes."""

    name: ClassVar[str]
    signs: ClassVar[tuple[Sign, ...]]

    def missing(self, liveness: DataFrame, promise: str, *shows: Column) -> DataFrame:
        """One finding a probe that failed; a note where a known hindrance explains it.

        Args:
            liveness: Every look.
            promise: How the message begins.
            shows: Further events of the evidence, each null where it says nothing.
        """
        times = {
            "waited_s": (F.col("time_ns") - F.col("healed_ns")) / 1e9,
            "silent_s": (F.col("time_ns") - F.col("since_ns")) / 1e9,
        }
        hindered = F.col("hindrance").isNotNull()
        return finding(
            _missing(liveness, self.signs).withColumns(times),
            self.name,
            severity=F.when(hindered, Severity.NOTE.value).otherwise(Severity.VIOLATION.value),
            message=phrase(
                promise + ": {detail}, {waited_s:.0f} s after the last heal, {since}{because}.",
                since=F.when(F.col("since_ns") == F.col("healed_ns"), "and never since then").otherwise(
                    phrase("and not for {silent_s:.0f} s")
                ),
                because=F.when(hindered, phrase("; but {hindrance}")).otherwise(""),
            ),
            evidence=F.array(
                event("liveness", "sign", "broker", "process", "waited_s", "silent_s", "detail", "cpu_percent"), *shows
            ),
        )


def not_starved(signs: Sequence[Sign]) -> Assumption:
    """Where a probe failed, the machine was not starved: a starved machine explains every failure."""
    return Assumption(
        facts=("liveness",),
        broken=lambda liveness: _missing(liveness, signs).where(F.col("hindrance").isNull() & _starved()),
        reason=(
            "the machine was starved, so the cause is unknown: {detail}; its processors were busy for {cpu_percent} %, "
            "its load was {load_percent} % of them, the harness ran {late_ms} ms late"
        ),
    )


def _missing(liveness: DataFrame, signs: Sequence[Sign]) -> DataFrame:
    return liveness.where(~F.col("shown") & F.col("sign").isin([sign.value for sign in signs]))


def _starved() -> Column:
    crowded = (F.col("cpu_percent") >= BUSY_PERCENT) & (F.col("load_percent") >= CROWDED_PERCENT)
    return crowded | (F.col("late_ms") >= LATE_MS)
