"""nonmonotonic-send: a record that is sent after another was acknowledged has the higher offset.

A leader appends at its log's end, so what is sent later has the higher offset, in spite of retries, as long as no
acknowledged record is lost.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES, WEAK_ACKS
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import finding, severity
from harness.analysis.check_helpers.send_reversals import reversal_events, reversals
from harness.analysis.subjects import RECORDS_PLACED
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject


class NonmonotonicSend(Check):
    """Acknowledged sends of one process that were not under way together."""

    name: ClassVar[str] = "nonmonotonic-send"
    title: ClassVar[str] = "nonmonotonic-send"
    promise: ClassVar[str] = "A record that is sent after another was acknowledged has the higher offset."
    needs: ClassVar[tuple[str, ...]] = ("sends",)
    about: ClassVar[Subject] = RECORDS_PLACED
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", "send_reversals")
    judges_without: ClassVar[tuple[str, ...]] = ("zookeeper",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)
    excused_by: ClassVar[tuple[Allowance, ...]] = (WEAK_ACKS, *LOSSES)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record."""
        rows = reversals(facts, settings, under_way_together=False)
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, acks=F.col("acks"), unclean=F.col("unclean")),
            message=(
                "A record that is sent later has the higher offset: {value} of {process} is at {topic}-{partition} "
                "offset {offset}, and a record sent before it at offset {earlier_offset}."
            ),
            evidence=reversal_events(),
        )


PLUGIN: type[Check] = NonmonotonicSend
