"""marker-epochs: markers carry the epochs of their coordinators, which never go back.

A leader refuses a marker of an older coordinator than that of the producer's last marker, as a newer one may have
decided otherwise (`ProducerAppendInfo.checkCoordinatorEpoch`). The epoch is one in which a broker led the partition of
`__transaction_state` with the producer's transactional id.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.transactions import (
    PRODUCER_KEY,
    OfTransactions,
    on_furthest,
)
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.contracts.checks import Check, Settings


class MarkerEpochs(OfTransactions):
    """Every marker beside the producer's markers before it, and beside its decision."""

    name: ClassVar[str] = "marker-epochs"
    title: ClassVar[str] = "marker-epochs"
    promise: ClassVar[str] = (
        "Coordinator epochs of a producer's markers never decrease in a partition, and are those of coordinators "
        "(ProducerAppendInfo)."
    )
    reads: ClassVar[tuple[str, ...]] = ("transactions", "markers", "leader_epochs")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a marker whose coordinator epoch is too old."""
        earlier = in_order(*PRODUCER_KEY, by=("offset",))
        markers = on_furthest(facts["markers"], facts["replicas"])
        newest = F.max(F.struct("coordinator_epoch", "offset")).over(earlier)
        back = (
            markers.withColumn("newest", newest)
            .where(F.col("coordinator_epoch") < F.col("newest.coordinator_epoch"))
            .withColumn("wrong", phrase("the marker at offset {newest.offset} has epoch {newest.coordinator_epoch}"))
            .drop("newest")
        )
        foreign = (
            markers.join(self._last_terms(facts), on=["run_id", "producer_id"], how="inner")
            .where(F.col("coordinator_epoch") > F.col("last_epoch"))
            .withColumn("wrong", phrase("the last coordinator had epoch {last_epoch}"))
            .drop("last_epoch")
        )
        return finding(
            self.judged(back.unionByName(foreign), facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "A marker has the epoch of its coordinator: the marker of producer {producer_id} at offset {offset} of "
                "{topic}-{partition} has coordinator epoch {coordinator_epoch}, and {wrong}."
            ),
            evidence=F.array(
                event("markers", "broker", "offset", "producer_id", "result", "coordinator_epoch", "wrong")
            ),
        )

    def _last_terms(self, facts: dict[str, DataFrame]) -> DataFrame:
        """One row a producer: the last leader epoch of the partition of `__transaction_state` that has its id."""
        epochs = facts["replicas"].select(*PARTITION_KEY, F.explode("leader_epochs").alias("entry"))
        last = epochs.groupBy(*PARTITION_KEY).agg(F.max(F.col("entry")[0]).alias("last_epoch"))
        producers = facts["transactions"].select(*PARTITION_KEY, "producer_id").distinct()
        return producers.join(last, on=list(PARTITION_KEY), how="inner").select("run_id", "producer_id", "last_epoch")


PLUGIN: type[Check] = MarkerEpochs
