"""I37: every rebalance ends in time.

A group waits for its members as long as the most patient of them allows (`rebalance.timeout.ms`); once more if only
instances are missing, and for these until their sessions end; then for their leader's assignment as long again (Kafka's
`DelayedJoin` and `DelayedSync`). Each state in between must end by then. A coordinator that was stopped or isolated has
no such limit, so time counts from the last heal.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, HEALED
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.groups import COORDINATORS_TELL, with_patience
from harness.analysis.subjects import groups_in
from harness.contracts.checks import Assumption, Check, Settings, Subject

_REBALANCING = ("PreparingRebalance", "CompletingRebalance")


class RebalanceEnd(Check):
    """Every state on the way to the next generation, and how long it lasted."""

    name: ClassVar[str] = "I37"
    title: ClassVar[str] = "I37 rebalance-end"
    promise: ClassVar[str] = (
        "A rebalance ends within the time that its members are given to join and to sync (DelayedJoin, DelayedSync)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = groups_in("group_states")
    reads: ClassVar[tuple[str, ...]] = ("group_states", "fault_windows")
    assumes: ClassVar[tuple[Assumption, ...]] = (BROKERS_WHOLE, COORDINATORS_TELL, HEALED)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a state that lasted too long."""
        states = facts["group_states"]
        healed = facts["fault_windows"].groupBy("run_id").agg(F.max("healed_ns").alias("healed_ns"))
        lasted_ms = (F.col("until_ns") - F.greatest("time_ns", "healed_ns")) / 1e6
        rows = (
            with_patience(states.where(F.col("state").isin(*_REBALANCING)), states)
            .join(healed, on="run_id", how="left")
            .withColumn("lasted_ms", lasted_ms)
            .where(F.col("lasted_ms") > F.col("bound_ms"))
        )
        return finding(
            rows,
            self.name,
            message=phrase(
                "A rebalance ends: group {group} was {state} in generation {generation} on broker {broker} for "
                "{lasted_s:.0f} s{open}, and its members give it {bound_s:.0f} s.",
                lasted_s=F.col("lasted_ms") / 1000,
                bound_s=F.col("bound_ms") / 1000,
                open=F.when(F.col("ended"), "").otherwise(" and still is"),
            ),
            evidence=F.array(
                event("group_states", "group", "broker", "incarnation", "seq", "state", "reason", "time_ns", "until_ns")
            ),
        )


PLUGIN: type[Check] = RebalanceEnd
