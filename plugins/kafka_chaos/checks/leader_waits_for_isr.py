"""I8: a leader waits for every member of ZooKeeper's ISR.

Any member of ZooKeeper's ISR may be elected next. So the set that must have a record before the high watermark passes
it holds at least the ISR of the version of the state that the leader knows; it may hold more, never less (Kafka's
`Partition.maybeIncrementLeaderHW`; an ISR counts only once ZooKeeper has accepted it).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import has_field
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Assumption, Check, Settings


class LeaderWaitsForIsr(Check):
    """The replicas that each leader waited for, against the version of the state that it logged."""

    name: ClassVar[str] = "I8"
    title: ClassVar[str] = "I8 leader-waits-for-isr"
    promise: ClassVar[str] = (
        "The set that a leader waits for contains ZooKeeper's ISR (Partition.maybeIncrementLeaderHW)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leader_isrs", "partition_states")
    assumes: ClassVar[tuple[Assumption, ...]] = (has_field("zk_version", "leader_isrs"),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a set that lacks a member; a recreated topic has a version twice, and either counts."""
        key = [*PARTITION_KEY, "leader_epoch", "zk_version"]
        states = (
            facts["partition_states"].groupBy(*key).agg(F.collect_set("isr").alias("isrs"), F.max("zxid").alias("zxid"))
        )
        rows = (
            facts["leader_isrs"]
            .join(states, on=key, how="inner")
            .where(F.forall("isrs", lambda isr: F.size(F.array_except(isr, F.col("isr"))) > 0))
            .withColumn("left_out", F.array_except(F.element_at("isrs", 1), F.col("isr")))
        )
        return finding(
            rows,
            self.name,
            offset="high_watermark",
            message=phrase(
                "A leader waits for all of ZooKeeper's ISR: broker {broker}, leader of {topic}-{partition} in "
                "epoch {leader_epoch}, raised its high watermark to {high_watermark} with {isr}, but version "
                "{zk_version} of the state names {left_out} too.",
                isr=ids("isr"),
                left_out=ids("left_out"),
            ),
            evidence=F.array(
                event("leader_isrs", "broker", "incarnation", "seq", "isr", "zk_version", "high_watermark", "advances"),
                event("partition_states", "zxid", "zk_version", "isrs[0] as isr"),
            ),
        )


PLUGIN: type[Check] = LeaderWaitsForIsr
