"""I33: in one generation of a group a partition has one member.

The leader of the group assigns, by range or sticky, eagerly or cooperatively; a cooperative member first gives back
partitions that move, so that this holds in the generation in between too (KIP-429). Compared are the coordinator's
stored assignments, and those that members received. An instance that returns under another member id is the same member
(KIP-345). An empty group starts again with the first generation, as another group.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES_OF_OFFSETS
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import event, finding, severity
from harness.analysis.check_helpers.groups import with_unclean_offsets_topic
from harness.analysis.subjects import groups_in
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject

_OF = ("run_id", "source", "broker", "incarnation", "seq", "group", "life", "generation", "topic", "partition")
"""One assignment of a coordinator is one line; those of members are compared, whichever coordinator sent them."""


class GroupAssignments(Check):
    """Every partition of every generation, and its assigned member."""

    name: ClassVar[str] = "I33"
    title: ClassVar[str] = "I33 group-assignments"
    promise: ClassVar[str] = "No partition is assigned to two members of one generation of a group (KIP-429)."
    needs: ClassVar[tuple[str, ...]] = ("leader_epochs",)
    about: ClassVar[Subject] = groups_in("group_generations")
    reads: ClassVar[tuple[str, ...]] = ("group_generations",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES_OF_OFFSETS

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a partition of a generation."""
        known = (F.col("generation") >= 0) & F.col("partition").isNotNull() & F.col("owner").isNotNull()
        rows = (
            facts["group_generations"]
            .where(known)
            .groupBy(*_OF)
            .agg(
                F.sort_array(F.collect_set("owner")).alias("owners"),
                F.sort_array(F.collect_set("process")).alias("processes"),
                F.min("time_ns").alias("time_ns"),
            )
            .where(F.size("owners") > 1)
        )
        rows = with_unclean_offsets_topic(rows, facts["leader_epochs"], settings)
        return finding(
            rows.withColumn("all", F.array_join("owners", " and ")),
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean") & (F.col("source") == "member")),
            at_ns="time_ns",
            message=(
                "A partition has one member in each generation: in generation {generation} of group {group}, "
                "{topic}-{partition} was assigned to {all}."
            ),
            evidence=F.array(
                event(
                    "group_generations",
                    "source",
                    "group",
                    "generation",
                    "owners",
                    "processes",
                    "broker",
                    "incarnation",
                    "seq",
                )
            ),
        )


PLUGIN: type[Check] = GroupAssignments
