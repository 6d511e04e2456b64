"""I19: was acks=all acknowledged only with enough replicas in sync, and only what all of them have?

With fewer members in the ISR than `min.insync.replicas` a write is refused, or answered with an error where it was
appended before the ISR shrank; and success means that the high watermark has passed the record (Kafka's
`Partition.checkEnoughReplicasReachOffset`). A topic with fewer replicas than that needs all of them. A topic
requires the least that its configuration in ZooKeeper ever was, else what the scenario says; internal topics, whose
default no scenario names, are then judged by the high watermark only.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import event, finding, phrase
from harness.analysis.frames import PARTITION_KEY
from harness.contracts.checks import Check, Settings
from harness.values import ACKS_ALL


class Acknowledgements:
    """What leaders acknowledged with acks=all, by the size that their ISR had."""

    name: ClassVar[str] = "I19"
    title: ClassVar[str] = "I19 acknowledged-in-sync"
    promise: ClassVar[str] = (
        "acks=all succeeds only with min.insync.replicas in the ISR and below the high watermark (Partition)."
    )
    needs: ClassVar[tuple[str, ...]] = ("acknowledgements",)
    reads: ClassVar[tuple[str, ...]] = ("partition_states", "topic_configs")

    def unknown(self, facts: dict[str, DataFrame]) -> DataFrame | None:
        """Nothing to assume: each answer carries what its leader knew."""
        return None

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a leader, epoch and size of the ISR."""
        replicas = facts["partition_states"].groupBy(*PARTITION_KEY).agg(F.min(F.size("assignment")).alias("replicas"))
        internal, of_scenario = F.col("topic").startswith("__"), F.lit(settings.min_insync_replicas)
        required = F.when(F.col("always"), F.col("own")).when(~internal, F.least("own", of_scenario))
        needed = F.when(required.isNotNull(), F.least(required, F.coalesce("replicas", F.lit(1))))
        wrong = F.when(
            F.col("isr_size") < needed,
            phrase("with {isr_size} in the ISR where {needed} are needed", needed=needed),
        ).when(
            F.col("offset") >= F.col("high_watermark"),
            phrase("up to offset {offset} with the high watermark at {high_watermark}"),
        )
        rows = (
            facts["acknowledgements"]
            .where(F.col("acks") == ACKS_ALL)
            .join(replicas, on=list(PARTITION_KEY), how="left")
            .join(_topic_minimum(facts["topic_configs"]), on=["run_id", "topic"], how="left")
            .withColumn("wrong", wrong)
            .where(F.col("wrong").isNotNull())
        )
        return finding(
            rows,
            self.name,
            message=(
                "acks=all succeeds only when enough replicas have the record: broker {broker}, leader of "
                "{topic}-{partition} in epoch {leader_epoch}, acknowledged {answers} batches from offset "
                "{first_offset} on {wrong}."
            ),
            evidence=F.array(
                event("acknowledgements", "broker", "seq", "isr_size", "first_offset", "offset", "high_watermark")
            ),
        )


def _topic_minimum(configs: DataFrame) -> DataFrame:
    """One row a configured topic: `own`, the least value that it ever set, and whether it `always` set one."""
    own = F.col("min_insync_replicas")
    return configs.groupBy("run_id", "topic").agg(F.min(own).alias("own"), F.bool_and(own.isNotNull()).alias("always"))


PLUGIN: type[Check] = Acknowledgements
