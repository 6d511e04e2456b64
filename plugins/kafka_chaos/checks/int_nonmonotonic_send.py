"""int-nonmonotonic-send: records in flight together are appended in the order of sending.

With several requests in flight a retry may overtake; idempotent producers (KIP-98) and those with one request in flight
keep the order.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import finding, severity
from harness.analysis.check_helpers.send_reversals import reversal_events, reversals
from harness.analysis.subjects import RECORDS_PLACED
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject


class IntNonmonotonicSend(Check):
    """Acknowledged sends of one process that were under way together."""

    name: ClassVar[str] = "int-nonmonotonic-send"
    title: ClassVar[str] = "int-nonmonotonic-send"
    promise: ClassVar[str] = "Records that an idempotent producer has in flight together keep their order (KIP-98)."
    needs: ClassVar[tuple[str, ...]] = ("sends",)
    about: ClassVar[Subject] = RECORDS_PLACED
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", "send_reversals")
    judges_without: ClassVar[tuple[str, ...]] = ("zookeeper",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)
    excused_by: ClassVar[tuple[Allowance, ...]] = (
        *LOSSES,
        Allowance(
            reason="with several requests in flight and without idempotence a retry may be overtaken",
            without_idempotence=True,
        ),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record."""
        rows = reversals(facts, settings, under_way_together=True)
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, acks=F.col("acks"), unclean=F.col("unclean")),
            message=(
                "Records in flight together are appended in the order of sending: {value} of {process} is at "
                "{topic}-{partition} offset {offset}, and a record sent before it at offset {earlier_offset}."
            ),
            evidence=reversal_events(),
        )


PLUGIN: type[Check] = IntNonmonotonicSend
