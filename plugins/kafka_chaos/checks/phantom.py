"""phantom: every value that is read was sent.

Every send is recorded before it is made, so a value without a send was corrupted, or came from another client. Topics
that no producer of the load writes to are not judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.subjects import ENDS_READ
from harness.contracts.checks import Assumption, Check, Settings, Subject


class Phantom(Check):
    """What was read against everything that was ever sent, acknowledged or not."""

    name: ClassVar[str] = "phantom"
    title: ClassVar[str] = "phantom"
    promise: ClassVar[str] = "Every value that is read was sent."
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    covers: ClassVar[tuple[Subject, ...]] = (ENDS_READ,)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)
    prefiltered: ClassVar[str] = (
        "A value without a send is in a block where readers differ from sends, and all that was sent with it stays."
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a value."""
        sends = facts["sends"]
        rows = (
            facts["polls"]
            .join(sends, on=["run_id", "topic", "value"], how="left_anti")
            .join(sends, on=["run_id", "topic"], how="left_semi")
            .groupBy("run_id", "topic", "partition", "offset", "value")
            .agg(
                F.min("leader_epoch").alias("leader_epoch"),
                F.array_sort(F.collect_set(event("polls", "process", "index", "offset", "value"))).alias("events"),
            )
        )
        return finding(
            rows,
            self.name,
            message=(
                "Every value that is read was sent: {value} was read at {topic}-{partition} offset {offset}, and "
                "it was never sent there."
            ),
            evidence=F.col("events"),
        )


PLUGIN: type[Check] = Phantom
