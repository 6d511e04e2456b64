"""I32: after the last heal the cluster accepts writes and commits, and serves reads.

A retriable error disappears with its cause (Kafka's protocol guide, "Error Codes"): a client that retries has its
record acknowledged with acks=all, reads it, and commits. The harness sends these requests to every partition itself,
and checks that the readers of the load reach its record and that each client of the load completes an operation. What
the faults have left beyond repair is a note, and so is a partition that a group has assigned to no member by a gap in
Kafka's own protocol (docs/explanation/differences-from-kafka.md, "As in Kafka").
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, phrase
from harness.analysis.check_helpers.groups import left_unassigned
from harness.analysis.check_helpers.liveness import OfLiveness, not_starved
from harness.analysis.subjects import signs_of
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.store.history import Sign


class Service(OfLiveness, Check):
    """Signs of life that clients see."""

    name: ClassVar[str] = "I32"
    title: ClassVar[str] = "I32 service"
    promise: ClassVar[str] = (
        "Without faults after the last heal, every partition acknowledges with acks=all, serves what it acknowledged, "
        "takes commits, and lets each client complete operations (retriable errors in Kafka's protocol guide)."
    )
    needs: ClassVar[tuple[str, ...]] = ("liveness",)
    covers: ClassVar[tuple[Subject, ...]] = (signs_of(Sign.PRODUCE, Sign.FETCH),)
    reads: ClassVar[tuple[str, ...]] = ("group_generations",)
    signs: ClassVar[tuple[Sign, ...]] = (Sign.PRODUCE, Sign.FETCH, Sign.READ, Sign.COMMIT, Sign.WORK)
    assumes: ClassVar[tuple[Assumption, ...]] = (not_starved(signs),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a partition and what it does not do; one a reader that it keeps waiting."""
        liveness = _with_holes(facts["liveness"], facts["group_generations"])
        return self.missing(
            liveness,
            "A cluster without faults serves its clients",
            F.when(
                F.col("members").isNotNull(),
                event("group_generations", "process as group", "generation", "instance", "members"),
            ),
        )


def _with_holes(liveness: DataFrame, generations: DataFrame) -> DataFrame:
    """Add `instance`, `generation` and `members` where a group does not read what it has assigned to no member."""
    looks = liveness.select("run_id", F.col("process").alias("group"), F.col("time_ns").alias("looked_ns"))
    holes = left_unassigned(looks, generations).withColumnRenamed("group", "process")
    because = phrase(
        "generation {generation} gives it to no member: {instance} was to give it back, rejoined under another member "
        "id, and no rebalance follows (a gap in Kafka's protocol, KIP-345 with KIP-429)"
    )
    key = ["run_id", "process", "topic", "partition"]
    return liveness.join(holes, on=key, how="left").withColumn(
        "hindrance", F.coalesce("hindrance", F.when(F.col("members").isNotNull(), because))
    )


PLUGIN: type[Check] = Service
