"""I26: leaders append nothing with acks=all while too few replicas are in sync.

A leader refuses before it writes: a record refused afterwards would be in the log, and consumers would read what the
producer considers failed. It reports too few replicas *after* the append only if its ISR shrank in between (Kafka's
`Partition.appendRecordsToLeader`, `DelayedProduce`). Every append is compared with the least requirement that its topic
ever had, and every such refusal with the highest.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import has_field, without_acks
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.min_insync import REQUIREMENT_FACTS, with_required_isr
from harness.contracts.checks import Assumption, Check, Settings

NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20


class AppendedInSync(Check):
    """Appends of leaders with acks=all, and refusals after the append, by the size of their ISR."""

    name: ClassVar[str] = "I26"
    title: ClassVar[str] = "I26 appended-in-sync"
    promise: ClassVar[str] = (
        "With fewer than min.insync.replicas in the ISR nothing is appended with acks=all, and an appended batch is "
        "refused only after a shrink (Partition)."
    )
    needs: ClassVar[tuple[str, ...]] = ("appends",)
    fields: ClassVar[tuple[str, ...]] = ("append.acks", "append.isr_size")
    reads: ClassVar[tuple[str, ...]] = ("refusals", *REQUIREMENT_FACTS)
    assumes: ClassVar[tuple[Assumption, ...]] = (has_field("acks", "appends", without_acks),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a leader and epoch that appended too early, and one a size of the ISR that was no reason."""
        written = with_required_isr(facts["appends"], facts, settings)
        refused = facts["refusals"].where(F.col("error") == NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return self._written(written).unionByName(self._refused(with_required_isr(refused, facts, settings)))

    def _written(self, rows: DataFrame) -> DataFrame:
        return finding(
            rows.where(F.col("smallest_isr") < F.col("at_least")),
            self.name,
            message=(
                "Nothing is appended with acks=all while too few are in sync: broker {broker}, leader of "
                "{topic}-{partition} in epoch {leader_epoch}, wrote with {smallest_isr} in the ISR where {at_least} "
                "are needed."
            ),
            evidence=F.array(
                event("appends", "broker", "leader_epoch", "first_offset", "last_offset", "acks_all", "smallest_isr")
            ),
        )

    def _refused(self, rows: DataFrame) -> DataFrame:
        return finding(
            rows.where(F.col("isr_size") >= F.col("at_most")),
            self.name,
            message=(
                "A batch that was appended is refused only if the ISR shrank: broker {broker}, leader of "
                "{topic}-{partition} in epoch {leader_epoch}, refused {answers} batches that it had written, with "
                "{isr_size} in the ISR where {at_most} are enough."
            ),
            evidence=F.array(event("refusals", "broker", "seq", "leader_epoch", "error", "isr_size", "answers")),
        )


PLUGIN: type[Check] = AppendedInSync
