"""I3: the leader is in the ISR, and the ISR is never empty and holds assigned replicas only.

An acknowledged record is in every member of the ISR, so a leader from outside it, or an empty ISR, has given up
acknowledged records. A partition without a leader keeps its last ISR; with eligible replicas outside it (KIP-966),
these may be all that are left, or only the last leader, which may lead again. Kafka before 1.1, and the built-in broker
with `selector.profile: 0.8`, empty the ISR where unclean election is allowed, which is a violation too.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.facts.epochs import has_removed_replicas, may_be_empty
from harness.analysis.frames import PARTITION_KEY, contains
from harness.contracts.checks import Check, Settings
from harness.events import NO_LEADER


class LeaderInIsr(Check):
    """Every version of every partition's state znode, each by itself."""

    name: ClassVar[str] = "I3"
    title: ClassVar[str] = "I3 leader-in-isr"
    promise: ClassVar[str] = (
        "The leader is none or in the ISR; the ISR holds assigned replicas only (one that was just removed may stay for"
        " a while), and is never empty (with KIP-966: nor are the eligible replicas beside it, except while there is no"
        " leader and the last known one is kept)."
    )
    needs: ClassVar[tuple[str, ...]] = ("partition_states",)
    reads: ClassVar[tuple[str, ...]] = ("topics",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a version of a state znode that breaks a rule."""
        states = facts["partition_states"].join(_settled(facts["topics"]), on=["run_id", "topic"], how="left")
        last = F.col("zxid") == F.max("zxid").over(Window.partitionBy(*PARTITION_KEY))
        at_rest = F.coalesce(last & ~contains("moving", F.col("partition")), F.lit(False))
        rows = states.withColumn("wrong", _wrong(at_rest)).where(F.col("wrong").isNotNull())
        return finding(
            rows,
            self.name,
            message=(
                "The leader is in the ISR and the ISR within the assignment: in version {zk_version} of the state of "
                "{topic}-{partition}, {wrong}."
            ),
            evidence=F.array(
                event("partition_states", "zxid", "zk_version", "leader", "leader_epoch", "isr", "assignment", "writer")
            ),
        )


def _settled(topics: DataFrame) -> DataFrame:
    """One row a topic that stays: partitions of it that were in a reassignment in the end, where that is known."""
    stays = F.col("present") & ~F.col("deletion_pending")
    return topics.where(stays).select("run_id", "topic", F.col("reassigned").alias("moving"))


def _wrong(at_rest: Column) -> Column:
    """Say which rule a version breaks; null when none. At rest are the last versions of topics that stay."""
    isr = F.array_join(F.col("isr").cast("array<string>"), ", ")
    strangers = F.array_except("isr", "assignment")
    listed = F.array_join(strangers.cast("array<string>"), ", ")
    return (
        F.when(~may_be_empty() & (F.size("isr") == 0), "the ISR is empty")
        .when(
            (F.col("leader") != NO_LEADER) & ~contains("isr", F.col("leader")),
            phrase("leader {leader} is not in the ISR [{isr}]", isr=isr),
        )
        .when(
            (F.size(strangers) > 0) & (at_rest | ~has_removed_replicas("isr")),
            phrase("the ISR names {strangers}, not assigned", strangers=listed),
        )
    )


PLUGIN: type[Check] = LeaderInIsr
