"""I36: a member that takes a partition over begins where its group committed last, and skips nothing.

A member that is assigned a partition reads the committed offset and begins there (Kafka's
`ConsumerCoordinator.refreshCommittedOffsetsIfNeeded`). A lower start would process again what its group has committed;
records that were delivered and not committed may be read again. A higher start would skip unprocessed records.
`offset-regression` judges the same read-back by the clients' history; this check uses the coordinators' log, so a
commit counts even if its member died before the answer. A commit with an unknown outcome may have come later. A record
before the start of the log, from which records may be deleted, is not skipped, although a segment still has it.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES, LOSSES_OF_OFFSETS
from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, CLIENTS_WHOLE, COMPACTIONS_TOLD
from harness.analysis.check_helpers.compaction import SUPERSEDED, not_superseded
from harness.analysis.check_helpers.findings import event, finding, severity, with_unclean_election
from harness.analysis.check_helpers.groups import COORDINATORS_TELL, with_unclean_offsets_topic
from harness.analysis.check_helpers.log_starts import not_deleted
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.subjects import COMMITS_TAKEN
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.store.history import OpType

_OWNERSHIP = (*PARTITION_KEY, "group", "process", "index")
_POSITION = (*PARTITION_KEY, "group")
_TOLD = (*_OWNERSHIP, "member", "generation", "offset", "assigned_ns")


class GroupHandover(Check):
    """Every ownership of a partition, beside the commits before it and the records that were read in it."""

    name: ClassVar[str] = "I36"
    title: ClassVar[str] = "I36 group-handover"
    promise: ClassVar[str] = (
        "A member that takes a partition over begins at its group's last committed offset, and reads every record from "
        "there on (ConsumerCoordinator)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leader_epochs",)
    about: ClassVar[Subject] = COMMITS_TAKEN
    reads: ClassVar[tuple[str, ...]] = (
        "ownerships",
        "group_commits",
        "group_retirements",
        "committed_offsets",
        "polls",
        "replica_records",
        "replicas",
        "topics",
        SUPERSEDED,
    )
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE, BROKERS_WHOLE, COORDINATORS_TELL, COMPACTIONS_TOLD)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES_OF_OFFSETS

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an ownership that begins too low, and one that passes records by."""
        begun = facts["ownerships"].where(F.col("offset").isNotNull())
        return self._too_low(begun, facts, settings).unionByName(self._passed_by(begun, facts, settings))

    def _too_low(self, begun: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """The ownerships that begin below the last commit before they asked; commits of a deleted topic are gone."""
        there = facts["topics"].where("present").select("run_id", "topic")
        taken = facts["group_commits"].where(F.col("error") == 0)
        commits = _with_retired(taken, facts).select(*_POSITION, _commit().alias("commit"))
        decided = _with_retired(facts["group_commits"], facts)
        low = (
            begun.join(there, on=["run_id", "topic"], how="left_semi")
            .join(commits, on=list(_POSITION), how="inner")
            .where(F.col("commit.time_ns") < F.col("invoke_ns"))
            .groupBy(*_TOLD)
            .agg(F.max("commit").alias("last"))
            .where(F.col("offset") < F.col("last.to"))
        )
        rows = low.join(_explained(low, facts, decided), on=list(_OWNERSHIP), how="left_anti")
        rows = with_unclean_offsets_topic(rows, facts["leader_epochs"], settings)
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            at_ns="last.time_ns",
            message=(
                "A member that takes a partition over begins at the last commit: {process} began to read "
                "{topic}-{partition} for group {group} in generation {generation} at {offset}, and {last.to} had been "
                "committed in generation {last.generation}."
            ),
            evidence=F.array(
                event("ownerships", "group", "process", "index", "member", "generation", "offset", "assigned_ns"),
                event("group_commits", "last"),
            ),
        )

    def _passed_by(self, begun: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """The ownerships whose first record is not the first at or after the offset at which they begin."""
        read = facts["polls"].select(
            *PARTITION_KEY, "process", F.struct(F.col("index").alias("poll"), "position", "offset").alias("got")
        )
        within = (F.col("got.poll") > F.col("index")) & F.coalesce(
            F.col("got.poll") < F.col("until_index"), F.lit(True)
        )
        first = (
            begun.join(read, on=[*PARTITION_KEY, "process"], how="inner")
            .where(within)
            .groupBy(*_TOLD)
            .agg(F.min("got").alias("got"))
            .withColumn("first", F.col("got.offset"))
            .where(F.col("first") > F.col("offset"))
        )
        kept = not_deleted(facts["replica_records"], facts["replicas"], settings)
        held = not_superseded(kept, facts[SUPERSEDED]).select(*PARTITION_KEY, F.col("offset").alias("held"))
        rows = (
            first.join(held, on=list(PARTITION_KEY), how="inner")
            .where((F.col("held") >= F.col("offset")) & (F.col("held") < F.col("first")))
            .groupBy(*_TOLD, "first")
            .agg(F.min("held").alias("missed"), F.max("held").alias("missed_to"))
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="null")
        return finding(
            rows,
            self.name,
            severity=severity(LOSSES, settings, unclean=F.col("unclean")),
            offset="missed",
            at_ns="assigned_ns",
            message=(
                "A member that takes a partition over skips nothing: {process} began to read {topic}-{partition} for "
                "group {group} in generation {generation} at {offset}, and read {first} first, without {missed} to "
                "{missed_to}."
            ),
            evidence=F.array(
                event("ownerships", "group", "process", "index", "member", "generation", "offset", "assigned_ns"),
                event("polls", "first"),
                event("replica_records", "missed", "missed_to"),
            ),
        )


def _with_retired(commits: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
    """Add the offsets that a coordinator took back: one that expired or was deleted is a commit of nothing."""
    taken_back = facts["group_retirements"].withColumn("offset", F.lit(-1))
    return commits.unionByName(taken_back, allowMissingColumns=True)


def _commit() -> Column:
    """A commit as a coordinator answered it; the largest is the last that is in the log."""
    return F.struct("coordinator_epoch", "log_offset", F.col("offset").alias("to"), "generation", "member", "time_ns")


def _explained(low: DataFrame, facts: dict[str, DataFrame], decided: DataFrame) -> DataFrame:
    """The ownerships that begin at a commit that may be later than the last one, as far as is known."""
    by_clients = facts["committed_offsets"].where(
        (F.col("source") == "client") & (F.col("kind") == "commit") & (F.col("outcome") != OpType.FAIL.value)
    )
    possible = by_clients.select(*_POSITION, "offset", F.col("invoke_ns").alias("from_ns"), "complete_ns").unionByName(
        decided.select(*_POSITION, "offset", F.col("time_ns").alias("from_ns"), F.col("time_ns").alias("complete_ns"))
    )
    until_ns = F.coalesce("complete_ns", F.col("assigned_ns"))
    return (
        low.join(possible, on=[*_POSITION, "offset"], how="inner")
        .where((F.col("from_ns") <= F.col("assigned_ns")) & (until_ns > F.col("last.time_ns")))
        .select(*_OWNERSHIP)
    )


PLUGIN: type[Check] = GroupHandover
