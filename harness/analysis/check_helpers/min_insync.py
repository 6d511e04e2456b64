"""How many in-sync replicas does acks=all need on a partition, by every configuration that its topic had?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import PARTITION_KEY, made_once
from harness.contracts.checks import Settings

REQUIREMENT_FACTS = ("partition_states", "topic_configs")
"""What it is known by."""


def with_required_isr(rows: DataFrame, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
    """Add the topic's requirement: `at_least`, and `at_most`; null if unknown.

    A topic with fewer replicas than its `min.insync.replicas` needs all of them. A topic without a value of its own has
    that of the brokers. Where the topic's configuration is not known, it has at least that of the scenario. For
    internal topics, whose default no scenario states, the requirement is unknown.
    """
    replicas = _replica_counts(facts["partition_states"])
    configured = _configured(facts["topic_configs"])
    internal = F.col("topic").startswith("__")
    of_all, of_brokers = F.lit(settings.min_insync_replicas), F.lit(settings.broker_min_insync_replicas)
    default = F.when(F.col("always").isNotNull() & (of_brokers > 0), of_brokers).otherwise(of_all)
    lowest = F.when(F.col("always"), F.col("lowest")).when(~internal, F.least("lowest", default))
    highest = F.when(F.col("always"), F.col("highest"))
    return (
        rows.join(replicas.hint("shuffle_hash"), on=list(PARTITION_KEY), how="left")
        .join(configured.hint("shuffle_hash"), on=["run_id", "topic"], how="left")
        .withColumns(
            {
                "at_least": F.when(lowest.isNotNull(), F.least(lowest, F.coalesce("fewest_replicas", F.lit(1)))),
                "at_most": F.when(highest.isNotNull(), F.least(highest, "most_replicas")),
            }
        )
    )


@made_once
def _replica_counts(partition_states: DataFrame) -> DataFrame:
    return partition_states.groupBy(*PARTITION_KEY).agg(
        F.min("fewest_replicas").alias("fewest_replicas"), F.max("most_replicas").alias("most_replicas")
    )


@made_once
def _configured(topic_configs: DataFrame) -> DataFrame:
    own = F.col("min_insync_replicas")
    return topic_configs.groupBy("run_id", "topic").agg(
        F.min(own).alias("lowest"), F.max(own).alias("highest"), F.bool_and(own.isNotNull()).alias("always")
    )
