"""inconsistent-offsets: all clients see the same value at one offset.

An offset below the high watermark holds one record for ever. Compared are readers, which see nothing above it, and
producers whose record was acknowledged there with acks=all.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import UNIQUE_VALUES
from harness.analysis.check_helpers.findings import finding, oldest_epoch, phrase, severity, with_unclean_election
from harness.analysis.check_helpers.records import acknowledged
from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Allowance, Assumption, Check, Settings
from harness.values import ACKS_ALL


class InconsistentOffsets(Check):
    """What readers and acks=all producers say about each offset."""

    name: ClassVar[str] = "inconsistent-offsets"
    title: ClassVar[str] = "inconsistent-offsets"
    promise: ClassVar[str] = "One offset of a partition holds one value, for every reader and for good."
    needs: ClassVar[tuple[str, ...]] = ("polls",)
    reads: ClassVar[tuple[str, ...]] = ("sends", "leader_epochs")
    judges_without: ClassVar[tuple[str, ...]] = ("zookeeper",)
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES,)
    prefiltered: ClassVar[str] = "A reader with another value at an offset differs in that block, all of which stays."
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an offset."""
        columns = [*PARTITION_KEY, "offset", "value", "leader_epoch", "process", "index"]
        committed = acknowledged(facts["sends"]).where(F.col("acks") == ACKS_ALL)
        claims = (
            facts["polls"]
            .select(*columns, F.lit("polls").alias("fact"))
            .unionByName(committed.select(*columns, F.lit("sends").alias("fact")))
        )
        key = [*PARTITION_KEY, "offset"]
        digest = F.xxhash64("value")
        differ = (F.min(digest) != F.max(digest)).alias("differ")
        suspects = claims.groupBy(*key).agg(differ).where("differ").drop("differ")
        rows = (
            claims.join(suspects, on=key, how="left_semi")
            .groupBy(*key)
            .agg(
                F.array_sort(F.collect_set("value")).alias("values"),
                F.min("leader_epoch").alias("leader_epoch"),
                oldest_epoch().alias("since"),
                F.array_sort(F.collect_set(F.to_json(F.struct("fact", "process", "index", "offset", "value")))).alias(
                    "events"
                ),
            )
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="since")
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=phrase(
                "One offset holds one value: {topic}-{partition} offset {offset} holds {values}.",
                values=F.array_join("values", " and "),
            ),
            evidence=F.col("events"),
        )


PLUGIN: type[Check] = InconsistentOffsets
