"""I22: the elected leader is the one that the selector's rule gives for its inputs.

A controller's choice is a function of the assignment, the ISR and the live brokers (Kafka's `Election`; in the manner
of 0.8 its `PartitionLeaderSelector`), so that its successor, which looks at the same, chooses the same. "First" means
first in the order of the assignment.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import has_field
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.analysis.frames import contains
from harness.analysis.subjects import ELECTIONS_TOLD
from harness.contracts.checks import Assumption, Check, Settings, Subject

_NO_LEADER = "no replica is eligible"
_STRATEGIES = ("initialize", "offline", "reassign", "preferred", "controlled_shutdown")


class ElectionRule(Check):
    """Every election, decided again from its logged inputs."""

    name: ClassVar[str] = "I22"
    title: ClassVar[str] = "I22 election-rule"
    promise: ClassVar[str] = (
        "The leader and ISR chosen are those that the selector's rule gives for its inputs (Election)."
    )
    needs: ClassVar[tuple[str, ...]] = ("elections",)
    covers: ClassVar[tuple[Subject, ...]] = (ELECTIONS_TOLD,)
    assumes: ClassVar[tuple[Assumption, ...]] = (has_field("shutting_down", "elections"),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an election with another outcome than its rule's."""
        chosen = F.col("leader").isNotNull()
        other = ~F.col("leader").eqNullSafe(F.col("right_leader")) | (
            F.array_sort("isr") != F.array_sort(F.col("right_isr"))
        )
        refused = (F.col("error") == _NO_LEADER) & F.col("right_leader").isNotNull()
        rows = (
            facts["elections"]
            .where(F.col("strategy").isin(*_STRATEGIES))
            .withColumn("right_leader", _leader())
            .withColumn("right_isr", _isr(F.col("right_leader")))
            .where(F.when(chosen, other).otherwise(refused))
        )
        return finding(
            rows,
            self.name,
            message=phrase(
                "The leader is the one that the rule gives: controller {broker} chose {leader} with ISR {isr} for "
                "{topic}-{partition} ({strategy}), where the rule gives {right_leader} with ISR {right_isr}.",
                leader=_leader_text("leader"),
                isr=ids("isr"),
                right_leader=_leader_text("right_leader"),
                right_isr=ids("right_isr"),
            ),
            evidence=F.array(
                event(
                    "elections",
                    "broker",
                    "incarnation",
                    "seq",
                    "strategy",
                    "trigger",
                    "assigned",
                    "online",
                    "shutting_down",
                    "previous_leader",
                    "previous_isr",
                    "unclean_allowed",
                    "leader",
                    "isr",
                    "error",
                )
            ),
        )


def _leader() -> Column:
    """Return the leader that the rule chooses; null for none."""
    assigned, online, isr = F.col("assigned"), F.col("online"), F.col("previous_isr")
    online_assigned = F.array_intersect(assigned, online)
    first_online = F.try_element_at(online_assigned, F.lit(1))
    first_in_sync = F.try_element_at(F.array_intersect(online_assigned, isr), F.lit(1))
    nobody_in_sync = F.size(F.array_intersect(isr, online)) == 0
    offline = F.when(~nobody_in_sync, first_in_sync).when(F.col("unclean_allowed"), first_online)
    preferred = F.try_element_at(assigned, F.lit(1))
    head_of_isr = F.try_element_at(F.array_except(isr, "shutting_down"), F.lit(1))
    strategy = F.col("strategy")
    return (
        F.when(strategy == "initialize", first_online)
        .when(strategy == "offline", offline)
        .when(strategy == "preferred", F.when(first_in_sync == preferred, preferred))
        .when((strategy == "controlled_shutdown") & (F.col("profile") == "0.8"), head_of_isr)
        .otherwise(first_in_sync)
    )


def _isr(leader: Column) -> Column:
    """Return the ISR that the rule gives to that leader; null where there is none."""
    assigned, online, isr = F.col("assigned"), F.col("online"), F.col("previous_isr")
    live_isr = F.array_intersect(isr, online)
    strategy = F.col("strategy")
    isr_by_rule = (
        F.when(strategy == "initialize", F.array_intersect(assigned, online))
        .when(strategy == "offline", F.when(contains(isr, leader), live_isr).otherwise(F.array(leader)))
        .when(strategy == "controlled_shutdown", F.array_except(isr, "shutting_down"))
        .otherwise(isr)
    )
    return F.when(leader.isNotNull(), isr_by_rule)


def _leader_text(leader: str) -> Column:
    return F.when(F.col(leader).isNull(), "no leader").otherwise(phrase("broker {broker}", broker=F.col(leader)))


PLUGIN: type[Check] = ElectionRule
