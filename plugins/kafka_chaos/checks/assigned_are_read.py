"""I38: after the last heal every assigned partition is read by a member.

An assignment is useful only if its member reads the partition. Judged are the last generation of each group, and
records that were acknowledged after the last heal: within the time that a rebalance may take, while the group still
reads, one of its members must reach them (Kafka's KafkaConsumer: every partition of the assignment is fetched).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, CLIENTS_WHOLE, HEALED
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.groups import COORDINATORS_TELL, with_patience
from harness.analysis.check_helpers.liveness import not_starved
from harness.analysis.frames import GROUP_KEY, PARTITION_KEY
from harness.analysis.subjects import GROUPS_READ, RECORDS_PLACED
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.store.history import OpType, Sign


class AssignedAreRead(Check):
    """Every partition of each group's last generation, and records acknowledged after the last heal."""

    name: ClassVar[str] = "I38"
    title: ClassVar[str] = "I38 assigned-are-read"
    promise: ClassVar[str] = (
        "After the last heal every partition that a group has assigned is read by one of its members (KafkaConsumer)."
    )
    needs: ClassVar[tuple[str, ...]] = ("sends",)
    about: ClassVar[Subject] = GROUPS_READ
    covers: ClassVar[tuple[Subject, ...]] = (RECORDS_PLACED,)
    reads: ClassVar[tuple[str, ...]] = ("group_generations", "group_states", "ownerships", "polls", "fault_windows")
    assumes: ClassVar[tuple[Assumption, ...]] = (
        CLIENTS_WHOLE,
        BROKERS_WHOLE,
        COORDINATORS_TELL,
        HEALED,
        not_starved((Sign.READ,)),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a group and partition."""
        read = (
            facts["polls"]
            .join(facts["ownerships"].select(*GROUP_KEY, "process").distinct(), on=["run_id", "process"], how="inner")
            .groupBy(*PARTITION_KEY, "group")
            .agg(F.max("offset").alias("read_to"), F.max("time_ns").alias("read_ns"))
        )
        last_read = read.groupBy(*GROUP_KEY).agg(F.max("read_ns").alias("last_read_ns"))
        rows = (
            with_patience(_last_assignments(facts["group_generations"]), facts["group_states"])
            .join(last_read, on=list(GROUP_KEY), how="inner")
            .join(_sent_in_peace(facts), on=list(PARTITION_KEY), how="inner")
            .join(read, on=[*PARTITION_KEY, "group"], how="left")
            .where(F.col("complete_ns") + F.col("bound_ms") * 1_000_000 < F.col("last_read_ns"))
            .where(F.coalesce(F.col("read_to") < F.col("offset"), F.lit(True)))
            .groupBy(*PARTITION_KEY, "group", "generation", "member", "read_to", "bound_ms")
            .agg(F.min(F.struct("complete_ns", "offset")).alias("unread"))
            .withColumn("first", F.col("unread.offset"))
        )
        return finding(
            rows,
            self.name,
            offset="first",
            message=phrase(
                "Every assigned partition is read: offset {first} of {topic}-{partition} was acknowledged "
                "after the last heal, and in group {group}, where {member} has it in generation {generation}, "
                "{why}.",
                why=F.when(F.col("read_to").isNull(), "no member ever read that partition").otherwise(
                    phrase("no member read further than offset {read_to}")
                ),
            ),
            evidence=F.array(
                event("group_generations", "group", "generation", "member"),
                event("polls", "read_to"),
                event("sends", "unread"),
            ),
        )


def _last_assignments(generations: DataFrame) -> DataFrame:
    """One row a partition of each group's last assignment, by its coordinator."""
    assignments = generations.where(F.col("source") == "coordinator")
    last = assignments.groupBy(*GROUP_KEY).agg(F.max(F.struct("coordinator_epoch", "seq")).alias("last"))
    return (
        assignments.join(last, on=list(GROUP_KEY), how="inner")
        .where(F.struct("coordinator_epoch", "seq") == F.col("last"))
        .where(F.col("partition").isNotNull())
        .select(*PARTITION_KEY, "group", "generation", "member")
    )


def _sent_in_peace(facts: dict[str, DataFrame]) -> DataFrame:
    """The acknowledged records that were sent after the last heal."""
    healed = facts["fault_windows"].groupBy("run_id").agg(F.max("healed_ns").alias("healed_ns"))
    return (
        facts["sends"]
        .where((F.col("outcome") == OpType.OK.value) & F.col("offset").isNotNull())
        .join(healed, on="run_id", how="left")
        .where(F.coalesce(F.col("invoke_ns") > F.col("healed_ns"), F.lit(True)))
        .select(*PARTITION_KEY, "offset", "complete_ns")
    )


PLUGIN: type[Check] = AssignedAreRead
