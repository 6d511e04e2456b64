"""I25: did every broker claim producer ids that nobody had claimed before?

A broker takes a block of ids from ZooKeeper by writing the one after the last over exactly the version that it read.
Two producers of one id would be taken for one: a batch of the second is answered as a duplicate of the first's, and is
lost (KIP-98, Kafka's `ProducerIdManager`).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import event, finding, phrase
from harness.analysis.frames import in_order
from harness.contracts.checks import Check, Settings


class ProducerIdBlocks:
    """Every block against all that were claimed before it."""

    name: ClassVar[str] = "I25"
    title: ClassVar[str] = "I25 producer-id-blocks"
    promise: ClassVar[str] = "Blocks of producer ids are disjoint: no id is handed out twice (ProducerIdManager)."
    needs: ClassVar[tuple[str, ...]] = ("topics",)
    reads: ClassVar[tuple[str, ...]] = ("producer_id_blocks", "replica_records")

    def unknown(self, facts: dict[str, DataFrame]) -> DataFrame | None:
        """Whoever has an id must have been seen to get it: a block that was claimed in a gap is not known."""
        blocks = facts["producer_id_blocks"]
        gap = phrase("ZooKeeper's history of producer ids has a gap: version {zk_version} follows version {before_it}")
        gaps = blocks.withColumn("before_it", F.lag("zk_version").over(in_order("run_id", by=("zxid",)))).where(
            F.col("zk_version") > F.col("before_it") + 1
        )
        nobody = F.lit("producers have ids, but ZooKeeper's history has nobody who claimed any")
        numbered = facts["replica_records"].where(F.col("producer_id") >= 0).select("run_id").distinct()
        unclaimed = numbered.join(blocks, on="run_id", how="left_anti")
        return gaps.select("run_id", gap.alias("reason")).unionByName(
            unclaimed.select("run_id", nobody.alias("reason"))
        )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a block that does not come after all earlier ones."""
        earlier = in_order("run_id", by=("zxid",)).rowsBetween(-(2**31), -1)
        rows = (
            facts["producer_id_blocks"]
            .withColumn("taken", F.max(F.struct("last", "broker", "zk_version")).over(earlier))
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
