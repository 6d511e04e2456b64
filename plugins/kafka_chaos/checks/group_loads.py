"""I39: a coordinator loads the whole log of its groups, and late requests of older epochs change nothing.

Records that a leader knows as committed may lie above its high watermark when it takes the lead, so it reads to the end
of its log instead (Kafka's `GroupMetadataManager.loadGroupsAndOffsets`). Loads and unloads have a coordinator epoch;
one of an older epoch than the loaded one changes nothing (KAFKA-10614).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.groups import COORDINATORS_TELL, log_was_given
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.analysis.subjects import GROUPS_LOADED
from harness.contracts.checks import Assumption, Check, Settings, Subject

_LIFE = (*PARTITION_KEY, "broker", "incarnation")


class GroupLoads(Check):
    """Every load beside the log that its broker took the lead with, and every unload beside what was loaded."""

    name: ClassVar[str] = "I39"
    title: ClassVar[str] = "I39 group-loads"
    promise: ClassVar[str] = (
        "A coordinator reads its groups to the end of their log, and a late load or unload of an older epoch has "
        "no effect (GroupMetadataManager, KAFKA-10614)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = GROUPS_LOADED
    reads: ClassVar[tuple[str, ...]] = ("group_loads",)
    assumes: ClassVar[tuple[Assumption, ...]] = (BROKERS_WHOLE, COORDINATORS_TELL)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a load that ended too early, and one a load or unload that came too late."""
        loads = facts["group_loads"]
        return self._short(loads, facts["leadership_claims"]).unionByName(self._late(loads))

    def _short(self, loads: DataFrame, claims: DataFrame) -> DataFrame:
        led = claims.where(F.col("role") == "leader").select(
            *_LIFE, "leader_epoch", F.struct("high_watermark", "log_end_offset", "seq").alias("claim")
        )
        rows = loads.join(led, on=[*_LIFE, "leader_epoch"], how="inner").where(
            (F.col("log_end_offset") < F.col("claim.log_end_offset")) & log_was_given()
        )
        return finding(
            rows,
            self.name,
            offset="log_end_offset",
            message=(
                "A coordinator reads its groups to the end of their log: broker {broker} led {topic}-{partition} in "
                "epoch {leader_epoch} with a log to offset {claim.log_end_offset}, and read it to {log_end_offset}."
            ),
            evidence=F.array(
                event("group_loads", "broker", "incarnation", "seq", "groups", "offsets", "log_end_offset"),
                event("leadership_claims", "broker", "incarnation", "claim"),
            ),
        )

    def _late(self, loads: DataFrame) -> DataFrame:
        earlier = in_order(*_LIFE, by=("seq",)).rowsBetween(-(2**31), -1)
        loaded = F.when(F.col("kind") == "load", F.struct("leader_epoch", "seq"))
        rows = loads.withColumn("loaded", F.max(loaded).over(earlier)).where(
            F.col("leader_epoch") < F.col("loaded.leader_epoch")
        )
        return finding(
            rows,
            self.name,
            message=(
                "A late load or unload has no effect: a {kind} of epoch {leader_epoch} took effect on broker {broker}, "
                "which had loaded {topic}-{partition} in epoch {loaded.leader_epoch}."
            ),
            evidence=F.array(event("group_loads", "broker", "incarnation", "seq", "kind", "leader_epoch", "loaded")),
        )


PLUGIN: type[Check] = GroupLoads
