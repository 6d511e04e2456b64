"""aborted-read: a value whose send certainly failed is never read.

A failure tells the producer that nothing was written and that it may send again; a record that appears anyway is
written twice, or was not wanted. Sends with an unknown outcome (info) may be read.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, UNIQUE_VALUES
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.subjects import ENDS_READ
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.store.history import OpType


class AbortedRead(Check):
    """Failed sends, against everything that was read."""

    name: ClassVar[str] = "aborted-read"
    title: ClassVar[str] = "aborted-read"
    promise: ClassVar[str] = "A value whose send certainly failed is never read."
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    covers: ClassVar[tuple[Subject, ...]] = (ENDS_READ,)
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE)
    prefiltered: ClassVar[str] = (
        "A send that failed has no offset, so it stays; where its value is read, readers differ from sends."
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a value."""
        failed = (
            facts["sends"]
            .where(F.col("outcome") == OpType.FAIL.value)
            .select("run_id", "topic", "value", event("sends", "process", "index", "value", "error").alias("failure"))
        )
        rows = (
            facts["polls"]
            .join(failed.hint("shuffle_hash"), on=["run_id", "topic", "value"], how="inner")
            .groupBy("run_id", "topic", "partition", "offset", "value", "failure")
            .agg(
                F.min("leader_epoch").alias("leader_epoch"),
                F.array_sort(F.collect_set(event("polls", "process", "index", "offset", "value"))).alias("events"),
            )
        )
        return finding(
            rows,
            self.name,
            message=(
                "A value whose send failed is never read: {value} was read at {topic}-{partition} offset {offset}."
            ),
            evidence=F.concat(F.array("failure"), F.col("events")),
        )


PLUGIN: type[Check] = AbortedRead
