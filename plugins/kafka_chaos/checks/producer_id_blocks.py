"""I25: no producer id is handed out twice.

A broker claims a block of ids in ZooKeeper by writing the block after the last one over exactly the version that it
read. Two producers with one id would count as one: a batch of the second is answered as a duplicate of the first's, and
is lost (KIP-98, Kafka's `ProducerIdManager`).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.frames import in_order
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject


def _gaps(blocks: DataFrame) -> DataFrame:
    """The blocks after an unknown one."""
    before = F.lag("zk_version").over(in_order("run_id", by=("zxid",)))
    return blocks.withColumn("before_it", before).where(F.col("zk_version") > F.col("before_it") + 1)


def _unclaimed(records: DataFrame, blocks: DataFrame) -> DataFrame:
    """The runs with ids of producers, but without a claim of any block."""
    numbered = records.where(F.col("producer_id") >= 0).select("run_id").distinct()
    return numbered.join(blocks, on="run_id", how="left_anti")


class ProducerIdBlocks(Check):
    """Every block against all that were claimed before it."""

    name: ClassVar[str] = "I25"
    title: ClassVar[str] = "I25 producer-id-blocks"
    promise: ClassVar[str] = "Blocks of producer ids are disjoint: no id is handed out twice (ProducerIdManager)."
    needs: ClassVar[tuple[str, ...]] = ("topics",)
    about: ClassVar[Subject] = rows_of("producer_id_blocks", "blocks of producer ids")
    reads: ClassVar[tuple[str, ...]] = ("producer_id_blocks",)
    assumes: ClassVar[tuple[Assumption, ...]] = (
        Assumption(
            facts=("producer_id_blocks",),
            broken=_gaps,
            reason="ZooKeeper's history of producer ids has a gap: version {zk_version} follows version {before_it}",
        ),
        Assumption(
            facts=("replica_records", "producer_id_blocks"),
            broken=_unclaimed,
            reason="producers have ids, but ZooKeeper's history has no claim of any block",
        ),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a block that does not come after all earlier ones."""
        block = F.struct("last", "broker", "zk_version")
        earlier = in_order("run_id", by=("zxid",)).rowsBetween(-(2**31), -1)
        rows = (
            facts["producer_id_blocks"]
            .withColumn("taken", F.max(F.when(F.col("last").isNotNull(), block)).over(earlier))
            .where(F.col("first") <= F.col("taken.last"))
        )
        return finding(
            rows,
            self.name,
            message=(
                "Blocks of producer ids are disjoint: broker {broker} claimed {first} to {last} when ids up to "
                "{taken.last} had been claimed, those by broker {taken.broker}."
            ),
            evidence=F.array(event("producer_id_blocks", "broker", "zk_version", "zxid", "first", "last", "taken")),
        )


PLUGIN: type[Check] = ProducerIdBlocks
