"""I7: every member of the leader's own ISR has what that leader committed (WeakIsr).

A high watermark means that every member of the leader's own set holds everything below it, whatever ISR ZooKeeper has
(`WeakIsr` of Kafka's replication specification in TLA+). Here a member's log must once have reached there, in that
leader epoch or before; I9 judges whether members hold the same records.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.analysis.check_helpers.replication import members_below_high_watermark
from harness.contracts.checks import Assumption, Check, Settings


class WeakIsr(Check):
    """The sets that leaders waited for, against the logs of their members."""

    name: ClassVar[str] = "I7"
    title: ClassVar[str] = "I7 weak-isr"
    promise: ClassVar[str] = "What a leader calls committed is in the log of every member of its own ISR (WeakIsr)."
    needs: ClassVar[tuple[str, ...]] = ("leader_isrs", "appends")
    reads: ClassVar[tuple[str, ...]] = ("leadership_claims", "truncations")
    assumes: ClassVar[tuple[Assumption, ...]] = (BROKERS_WHOLE,)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a member that lacked something."""
        rows = members_below_high_watermark(facts["leader_isrs"], facts)
        return finding(
            rows,
            self.name,
            offset="reached",
            message=phrase(
                "Every member of a leader's ISR has what the leader committed: in epoch {leader_epoch} the high "
                "watermark of {topic}-{partition} rose to {high_watermark} with ISR {isr}, and the log of broker "
                "{member} had come to {reached}.",
                isr=ids("isr"),
            ),
            evidence=F.array(
                event("leader_isrs", "leader_epoch", "zk_version", "isr", "high_watermark"),
                event("appends", "member as broker", "reached"),
            ),
        )


PLUGIN: type[Check] = WeakIsr
