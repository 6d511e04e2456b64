"""I1: leader epochs of a partition increase strictly, and each has at most one leader.

Leader epochs are the fencing tokens of replication: a follower, a fetch and a truncation are right only because an
epoch means one leader. Every decision of the controller raises the epoch by one; a leader that changes its own ISR
keeps it (Kafka's `PartitionStateMachine` and `Partition`).
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Check, Settings
from harness.events import NO_LEADER


class OneLeaderPerEpoch(Check):
    """Epochs along the versions of the state znode, which are numbered, and the claims to lead in each."""

    name: ClassVar[str] = "I1"
    title: ClassVar[str] = "I1 one-leader-per-epoch"
    promise: ClassVar[str] = (
        "The leader epochs of a partition strictly increase, and at most one broker leads in each (KIP-101)."
    )
    needs: ClassVar[tuple[str, ...]] = ("partition_states", "leader_epochs")
    reads: ClassVar[tuple[str, ...]] = ("appends",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a version of the state znode with a wrong epoch, and one an epoch with two leaders."""
        return self._wrong_steps(facts["partition_states"]).unionByName(
            self._two_leaders(facts["leader_epochs"], facts["appends"].where(F.col("role") == "leader"))
        )

    def _wrong_steps(self, states: DataFrame) -> DataFrame:
        rows = states.withColumn("wrong", _wrong_step()).where(F.col("wrong").isNotNull())
        before = F.struct(
            F.col("previous_zk_version").alias("zk_version"),
            F.col("previous_leader").alias("leader"),
            F.col("previous_leader_epoch").alias("leader_epoch"),
        )
        return finding(
            rows,
            self.name,
            message=(
                "Leader epochs strictly increase: the state of {topic}-{partition} went from epoch "
                "{previous_leader_epoch} (version {previous_zk_version}) to epoch {leader_epoch} (version "
                "{zk_version}), but {wrong}."
            ),
            evidence=F.array(
                F.to_json(before), event("partition_states", "zxid", "zk_version", "leader", "leader_epoch", "writer")
            ),
        )

    def _two_leaders(self, epochs: DataFrame, appends: DataFrame) -> DataFrame:
        written = appends.withColumnRenamed("broker", "leader").select(
            *PARTITION_KEY, "leader_epoch", "leader", "first_offset", "last_offset"
        )
        rows = (
            epochs.where(F.col("leader") != NO_LEADER)
            .join(written, on=[*PARTITION_KEY, "leader_epoch", "leader"], how="left")
            .groupBy(*PARTITION_KEY, "leader_epoch")
            .agg(
                F.array_sort(F.collect_set("leader")).alias("leaders"),
                F.min("first_offset").alias("offset"),
                F.count_distinct("life").alias("lives"),
                F.collect_list(
                    event("leader_epochs", "leader", "leader_epoch", "zxid", "claimed", "first_offset", "last_offset")
                ).alias("events"),
            )
            .where((F.size("leaders") > 1) & (F.col("lives") <= 1))
        )
        return finding(
            rows,
            self.name,
            message=phrase(
                "One broker at most leads in a leader epoch: in epoch {leader_epoch} of {topic}-{partition} "
                "brokers {leaders} did.",
                leaders=F.array_join(F.col("leaders").cast("array<string>"), ", "),
            ),
            evidence=F.col("events"),
        )


def _wrong_step() -> Column:
    """Say what is wrong with the epoch of a version against the version seen before; null when nothing is."""
    grown = F.col("leader_epoch") - F.col("previous_leader_epoch")
    versions = F.col("zk_version") - F.col("previous_zk_version")
    is_next = versions == 1
    return (
        F.when(grown < 0, "an epoch never goes back")
        .when((grown == 0) & (F.col("leader") != F.col("previous_leader")), "another leader needs another epoch")
        .when(
            is_next & (F.col("writer") == "controller") & (grown != 1), "each decision of a controller raises it by one"
        )
        .when(is_next & (F.col("writer") == "leader") & (grown != 0), "a leader that writes its ISR keeps it")
        .when(grown > versions, "each version raises it by one at most")
    )


PLUGIN: type[Check] = OneLeaderPerEpoch
