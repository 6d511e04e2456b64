"""I16: a committed offset is not past the high watermark, and is still there at the end.

A consumer commits the position after what it read, which no high watermark can be below; processes that commit without
reading are not judged. And a group's last acknowledged commit is in the log of the offsets topic, from which each new
coordinator loads it (Kafka's `GroupMetadataManager`). `offset-regression` judges that it is never read back lower.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES_OF_OFFSETS
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, DUMPS_COMPLETE
from harness.analysis.check_helpers.findings import event, finding, severity, with_unclean_election
from harness.analysis.frames import OFFSET_KEY, PARTITION_KEY, in_turn
from harness.analysis.subjects import COMMITS_LOGGED
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.store.history import OpType
from harness.values import OFFSETS_TOPIC


class CommittedOffsets(Check):
    """Acknowledged commits, against high watermarks and against the log of the offsets topic."""

    name: ClassVar[str] = "I16"
    title: ClassVar[str] = "I16 committed-offsets"
    promise: ClassVar[str] = (
        "A committed offset is not past the high watermark, and the last one is in the offsets topic "
        "(GroupMetadataManager)."
    )
    needs: ClassVar[tuple[str, ...]] = ("committed_offsets",)
    about: ClassVar[Subject] = COMMITS_LOGGED
    reads: ClassVar[tuple[str, ...]] = ("polls", "leader_epochs", "leader_isrs", "compactions", "group_retirements")
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE, *DUMPS_COMPLETE)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES_OF_OFFSETS

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a commit."""
        acknowledged = (
            (F.col("source") == "client") & (F.col("kind") == "commit") & (F.col("outcome") == OpType.OK.value)
        )
        commits = facts["committed_offsets"].where(acknowledged)
        return self._too_far(commits, facts, settings).unionByName(self._vanished(commits, facts, settings))

    def _too_far(self, commits: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        place = ("high_watermark", "leader_epoch", "broker", "seq")
        highest = F.max_by(F.struct(*place), in_turn(*place)).alias("highest")
        exposed = facts["leader_isrs"].groupBy(*PARTITION_KEY).agg(highest)
        readers = facts["polls"].select(*PARTITION_KEY, "process").distinct()
        rows = (
            commits.join(exposed, on=list(PARTITION_KEY), how="inner")
            .where(F.col("offset") > F.col("highest.high_watermark"))
            .join(readers, on=[*PARTITION_KEY, "process"], how="left_semi")
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="null")
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=(
                "A committed offset is not past the high watermark: group {group} committed offset {offset} of "
                "{topic}-{partition}, whose high watermark never passed {highest.high_watermark}."
            ),
            evidence=F.array(
                event("committed_offsets", "group", "process", "index", "offset"), event("leader_isrs", "highest")
            ),
        )

    def _vanished(self, commits: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        place = ("complete_ns", "index", "process", "offset")
        last_of_all = F.max_by(F.struct(*place), in_turn(*place)).alias("last")
        last = commits.groupBy(*OFFSET_KEY).agg(last_of_all).select(*OFFSET_KEY, "last.*")
        in_log = facts["committed_offsets"].where(F.col("source") == "log")
        logged = in_log.select("run_id").distinct()
        rows = (
            last.join(logged, on="run_id", how="left_semi")
            .join(in_log.select(*OFFSET_KEY, "offset"), on=[*OFFSET_KEY, "offset"], how="left_anti")
            .join(_replaced(facts, in_log), on=list(OFFSET_KEY), how="left_anti")
            .join(_taken_back(last, facts["group_retirements"]), on=list(OFFSET_KEY), how="left_anti")
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="null")
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=(
                "A group's last committed offset is in the log of the offsets topic: the commit of offset {offset} "
                "of {topic}-{partition} by {group} was acknowledged, and no replica has it."
            ),
            evidence=F.array(event("committed_offsets", "group", "process", "index", "offset", "complete_ns")),
        )


def _replaced(facts: dict[str, DataFrame], in_log: DataFrame) -> DataFrame:
    """One row a group's partition whose last commit in a cleaned log was never acknowledged."""
    cleaned = facts["compactions"].where(F.col("topic") == OFFSETS_TOPIC)
    unknown = (
        facts["committed_offsets"]
        .where((F.col("source") == "client") & (F.col("kind") == "commit"))
        .where(F.col("outcome") == OpType.INFO.value)
    )
    return (
        unknown.select(*OFFSET_KEY, "offset")
        .join(in_log.select(*OFFSET_KEY, "offset", "log_partition"), on=[*OFFSET_KEY, "offset"], how="inner")
        .join(
            cleaned.select("run_id", F.col("partition").alias("log_partition")),
            on=["run_id", "log_partition"],
            how="inner",
        )
        .select(*OFFSET_KEY)
        .distinct()
    )


def _taken_back(last: DataFrame, retirements: DataFrame) -> DataFrame:
    """One row a group's partition whose last commit expired or was deleted after it had been acknowledged."""
    return (
        last.join(
            retirements.select(*OFFSET_KEY, F.col("time_ns").alias("retired_ns")),
            on=list(OFFSET_KEY),
            how="inner",
        )
        .where(F.col("retired_ns") >= F.col("complete_ns"))
        .select(*OFFSET_KEY)
    )


PLUGIN: type[Check] = CommittedOffsets
