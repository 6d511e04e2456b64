"""offset-regression: a committed offset is never read back lower than an acknowledged commit.

A committed offset is a register: a read-back returns the last commit acknowledged before it, or one that was in flight
since. A group may go back by committing a lower offset itself; it may never read an offset that no member committed
then.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES_OF_OFFSETS
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import event, finding, severity
from harness.analysis.check_helpers.groups import with_unclean_offsets_topic
from harness.analysis.frames import OFFSET_KEY, in_order
from harness.analysis.subjects import COMMITS_READ_BACK
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.store.history import OpType


class OffsetRegression(Check):
    """Every read-back against the commits before and around it."""

    name: ClassVar[str] = "offset-regression"
    title: ClassVar[str] = "offset-regression"
    promise: ClassVar[str] = "A committed offset is never read back lower than an acknowledged commit."
    needs: ClassVar[tuple[str, ...]] = ("committed_offsets",)
    about: ClassVar[Subject] = COMMITS_READ_BACK
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", "group_retirements")
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES_OF_OFFSETS

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a read-back that is too low."""
        by_clients = facts["committed_offsets"].where(F.col("source") == "client")
        commits = by_clients.where((F.col("kind") == "commit") & (F.col("outcome") != OpType.FAIL.value))
        low = _lower_than_acknowledged(by_clients)
        possible = commits.select(
            *OFFSET_KEY,
            "offset",
            F.col("invoke_ns").alias("commit_invoke_ns"),
            F.col("complete_ns").alias("commit_complete_ns"),
        )
        explained = low.join(possible, on=[*OFFSET_KEY, "offset"], how="inner").where(
            (F.col("commit_invoke_ns") <= F.col("complete_ns"))
            & (F.coalesce("commit_complete_ns", F.col("complete_ns")) >= F.col("floor.invoke_ns"))
        )
        rows = low.join(explained, on=[*OFFSET_KEY, "process", "index"], how="left_anti")
        rows = rows.join(
            _taken_back(low, facts["group_retirements"]), on=[*OFFSET_KEY, "process", "index"], how="left_anti"
        )
        rows = with_unclean_offsets_topic(rows, facts["leader_epochs"], settings)
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=(
                "A committed offset is never read back lower than an acknowledged commit: group {group} read offset "
                "{offset} of {topic}-{partition} after offset {floor.offset} had been acknowledged."
            ),
            evidence=F.array(
                event("committed_offsets", "'commit' as kind", "group", "floor as commit"),
                event("committed_offsets", "kind", "group", "process", "index", "offset", "invoke_ns", "complete_ns"),
            ),
        )


def _lower_than_acknowledged(operations: DataFrame) -> DataFrame:
    """The read-backs that returned less than the last commit acknowledged before them, with that commit as `floor`."""
    is_commit = F.col("kind") == "commit"
    acknowledged = F.when(is_commit, F.struct("offset", "process", "index", "invoke_ns", "complete_ns"))
    at_ns = F.when(is_commit, F.col("complete_ns")).otherwise(F.col("invoke_ns"))
    before = in_order(*OFFSET_KEY, by=("at_ns",))  # what shares the instant counts as before
    return (
        operations.where(F.col("outcome") == OpType.OK.value)
        .withColumn("at_ns", at_ns)
        .withColumn("floor", F.last(acknowledged, ignorenulls=True).over(before))
        .where(~is_commit & (F.col("offset") < F.col("floor.offset")))
    )


def _taken_back(low: DataFrame, retirements: DataFrame) -> DataFrame:
    """The read-backs of nothing after the committed offset expired or was deleted."""
    return (
        low.where(F.col("offset") < 0)
        .join(
            retirements.select(*OFFSET_KEY, F.col("time_ns").alias("retired_ns")),
            on=list(OFFSET_KEY),
            how="inner",
        )
        .where(F.col("retired_ns").between(F.col("floor.invoke_ns"), F.col("complete_ns")))
        .select(*OFFSET_KEY, "process", "index")
    )


PLUGIN: type[Check] = OffsetRegression
