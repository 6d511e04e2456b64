"""I34: generations of a group increase, and a new coordinator continues with the group that was stored last.

A generation begins when all members have joined, and is final when the leader's assignment is stored with acks=all;
only then do members learn their partitions. So a generation that was not stored may be begun again by the next
coordinator, but a stored one is never lost, and a coordinator that loads the group has its members and assignments as
stored (Kafka's `GroupMetadataManager`). An empty group may start again.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES_OF_OFFSETS
from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE
from harness.analysis.check_helpers.findings import event, finding, severity
from harness.analysis.check_helpers.groups import (
    COORDINATORS_TELL,
    has_ended,
    log_was_given,
    with_unclean_offsets_topic,
)
from harness.analysis.frames import GROUP_KEY, in_order
from harness.analysis.subjects import groups_in
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject

_LINE = ("broker", "incarnation", "seq", "coordinator_epoch", "generation", "time_ns")


class GroupGenerations(Check):
    """Every state of a group beside the one before, and every load beside what had been stored."""

    name: ClassVar[str] = "I34"
    title: ClassVar[str] = "I34 group-generations"
    promise: ClassVar[str] = (
        "The generations of a group increase, and a coordinator continues with the members and assignments that were "
        "stored last (GroupMetadataManager)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leader_epochs",)
    about: ClassVar[Subject] = groups_in("group_states")
    reads: ClassVar[tuple[str, ...]] = ("group_states", "group_generations", "group_loads")
    assumes: ClassVar[tuple[Assumption, ...]] = (BROKERS_WHOLE, COORDINATORS_TELL)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES_OF_OFFSETS

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a step back, one a group that a coordinator lost, and one a group that changed in a load."""
        states = facts["group_states"]
        lost = self._lost(states, facts["group_loads"]).unionByName(self._changed(facts["group_generations"]))
        lost = with_unclean_offsets_topic(lost, facts["leader_epochs"], settings)
        excused = finding(
            lost,
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            at_ns="before_ns",
            message=(
                "A coordinator goes on with the group that was stored last: generation {before.generation} of group "
                "{group} was stored in coordinator epoch {before.coordinator_epoch}, and in epoch {coordinator_epoch} "
                "broker {broker} loaded {loaded}."
            ),
            evidence=F.array(
                event("group_generations", "group", "before as stored"),
                event("group_loads", "broker", "incarnation", "seq", "coordinator_epoch", "loaded"),
            ),
        )
        return excused.unionByName(self._back(states))

    def _back(self, states: DataFrame) -> DataFrame:
        term = (*GROUP_KEY, "broker", "incarnation", "coordinator_epoch")
        before = F.lag(F.struct("generation", "state", "seq")).over(in_order(*term, by=("seq",)))
        rows = (
            states.withColumn("before", before)
            .where(F.col("before.state") != "Dead")
            .where(F.col("generation") < F.col("before.generation"))
        )
        return finding(
            rows,
            self.name,
            message=(
                "The generations of a group increase: on broker {broker} group {group} went from generation "
                "{before.generation} to {generation} in coordinator epoch {coordinator_epoch}."
            ),
            evidence=F.array(
                event("group_states", "group", "broker", "incarnation", "seq", "state", "generation", "before")
            ),
        )

    def _lost(self, states: DataFrame, loads: DataFrame) -> DataFrame:
        """The loads that lack a group, or have an older generation of it than was stored."""
        lasting = states.where((F.col("state") == "Stable") | has_ended())
        begun = loads.where((F.col("kind") == "load") & log_was_given()).select(
            "run_id",
            F.col("partition").alias("offsets_partition"),
            F.col("leader_epoch").alias("coordinator_epoch"),
            "broker",
            "incarnation",
            "seq",
        )
        of_load = (*GROUP_KEY, "offsets_partition", "coordinator_epoch", "broker", "incarnation")
        last = (
            lasting.select(
                *GROUP_KEY, "offsets_partition", F.struct("coordinator_epoch", *_order(), "state").alias("before")
            )
            .join(begun, on=["run_id", "offsets_partition"], how="inner")
            .where(F.col("before.coordinator_epoch") < F.col("coordinator_epoch"))
            .groupBy(*of_load, "seq")
            .agg(F.max("before").alias("before"))
            .where(F.col("before.state") == "Stable")
        )
        read = states.where(F.col("from_state") == "").select(*of_load, F.col("generation").alias("found"))
        loaded = F.coalesce(F.concat(F.lit("generation "), F.col("found")), F.lit("no such group"))
        return (
            last.join(read, on=list(of_load), how="left")
            .where(F.coalesce(F.col("found") < F.col("before.generation"), F.lit(True)))
            .withColumn("loaded", loaded)
            .select(*_columns())
        )

    def _changed(self, generations: DataFrame) -> DataFrame:
        """The loads in which the generation that was stored last has other members or partitions."""
        whose = F.concat_ws("-", "owner", "topic", "partition")
        assignments = (
            generations.where(F.col("source") == "coordinator")
            .groupBy(*GROUP_KEY, *_LINE, "reason")
            .agg(F.sort_array(F.collect_set(whose)).alias("held"))
        )
        earlier = in_order(*GROUP_KEY, by=("coordinator_epoch", "seq")).rowsBetween(-(2**31), -1)
        before = F.last(F.struct("coordinator_epoch", *_order(), "held")).over(earlier)
        return (
            assignments.withColumn("before", before)
            .where(F.col("reason") == "loaded")
            .where((F.col("generation") == F.col("before.generation")) & (F.col("held") != F.col("before.held")))
            .withColumn(
                "loaded",
                F.concat(
                    F.lit("it as "),
                    F.array_join("held", ", "),
                    F.lit(" where it had been "),
                    F.array_join("before.held", ", "),
                ),
            )
            .select(*_columns())
        )


def _order() -> tuple[str, ...]:
    return ("seq", "generation", "time_ns", "broker", "incarnation")


def _columns() -> list[Column]:
    before = F.struct(*(F.col(f"before.{name}") for name in ("coordinator_epoch", *_order())))
    named = map(F.col, (*GROUP_KEY, "coordinator_epoch", "broker", "incarnation", "seq", "loaded"))
    return [*named, before.alias("before"), F.col("before.time_ns").alias("before_ns")]


PLUGIN: type[Check] = GroupGenerations
