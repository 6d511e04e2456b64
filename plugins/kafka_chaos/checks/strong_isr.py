"""I6: every member of ZooKeeper's ISR has what was committed (StrongIsr).

Any member of the ISR in ZooKeeper may be elected next without loss, so every member of it holds everything below any
high watermark that the leader of that version exposed (`StrongIsr` of Kafka's replication spec in TLA+). A member's log
must once have reached there, in that leader epoch or before; and at the end every member of the last ISR still holds
it, unless an unclean election or a power loss gave it up.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, DUMPS_COMPLETE, has_field
from harness.analysis.check_helpers.findings import (
    event,
    finding,
    ids,
    last_isr,
    phrase,
    severity,
    with_unclean_election,
)
from harness.analysis.check_helpers.replication import members_below_high_watermark
from harness.analysis.frames import PARTITION_KEY, in_turn
from harness.contracts.checks import Allowance, Assumption, Check, Settings


class StrongIsr(Check):
    """High watermarks against the logs of all members of ZooKeeper's ISR, then and at the end."""

    name: ClassVar[str] = "I6"
    title: ClassVar[str] = "I6 strong-isr"
    promise: ClassVar[str] = (
        "Everything that a leader called committed is in the log of every member of ZooKeeper's ISR (StrongIsr)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leader_isrs", "appends", "partition_states", "replicas")
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", "leadership_claims", "topics", "truncations")
    assumes: ClassVar[tuple[Assumption, ...]] = (BROKERS_WHOLE, *DUMPS_COMPLETE, has_field("zk_version", "leader_isrs"))
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a member that lacked records then, and one a replica that lacks them at the end."""
        return self._during_the_run(facts).unionByName(self._after_the_run(facts, settings))

    def _during_the_run(self, facts: dict[str, DataFrame]) -> DataFrame:
        key = [*PARTITION_KEY, "leader_epoch", "zk_version"]
        exposed = facts["leader_isrs"].groupBy(*key).agg(F.max("high_watermark").alias("high_watermark"))
        watermarks = facts["partition_states"].select(*key, "isr").join(exposed, on=key, how="inner")
        rows = members_below_high_watermark(watermarks, facts)
        return finding(
            rows,
            self.name,
            offset="reached",
            message=phrase(
                "All members of ZooKeeper's ISR have what is committed: in epoch {leader_epoch} the high watermark "
                "of {topic}-{partition} rose to {high_watermark} under version {zk_version} with ISR {isr}, and "
                "the log of broker {member} had come to {reached}.",
                isr=ids("isr"),
            ),
            evidence=F.array(
                event("partition_states", "leader_epoch", "zk_version", "isr"),
                event("leader_isrs", "high_watermark"),
                event("appends", "member as broker", "reached"),
            ),
        )

    def _after_the_run(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        place = ("high_watermark", "leader_epoch", "broker", "incarnation", "seq")
        furthest = F.max_by(F.struct(*place), in_turn(*place))
        exposed = facts["leader_isrs"].groupBy(*PARTITION_KEY).agg(furthest.alias("exposed"))
        rows = (
            facts["replicas"]
            .join(last_isr(facts["partition_states"], facts["topics"]), on=[*PARTITION_KEY, "broker"], how="left_semi")
            .join(exposed, on=list(PARTITION_KEY), how="inner")
            .where(F.col("log_end_offset") < F.col("exposed.high_watermark"))
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="exposed.leader_epoch")
        return finding(
            rows,
            self.name,
            offset="log_end_offset",
            leader_epoch="exposed.leader_epoch",
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=(
                "Committed records stay in every log of the ISR: the high watermark of {topic}-{partition} "
                "had been {exposed.high_watermark} in epoch {exposed.leader_epoch}, and the log of broker {broker} "
                "ends at {log_end_offset}."
            ),
            evidence=F.array(
                event("leader_isrs", "exposed"), event("replicas", "broker", "log_start_offset", "log_end_offset")
            ),
        )


PLUGIN: type[Check] = StrongIsr
