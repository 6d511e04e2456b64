"""I2: controller epochs increase strictly, each belongs to one controller, and writes under an older one are rejected.

The winner of an election raises `/controller_epoch` in the transaction that makes it controller, and every later write
checks that version (KAFKA-6082). A leader that writes its own ISR repeats the controller epoch of the last decision, so
only decisions are judged: writes of a controller, or versions that raise the leader epoch.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.frames import in_order
from harness.contracts.checks import Check, Settings


class OneControllerPerEpoch(Check):
    """Controller epochs along ZooKeeper's transactions, their controllers, and the decisions under them."""

    name: ClassVar[str] = "I2"
    title: ClassVar[str] = "I2 one-controller-per-epoch"
    promise: ClassVar[str] = (
        "Controller epochs strictly increase, each belongs to one controller, and writes under an older one are"
        " rejected (KAFKA-6082)."
    )
    needs: ClassVar[tuple[str, ...]] = ("controller_epochs",)
    reads: ClassVar[tuple[str, ...]] = ("partition_states",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an epoch that does not grow, an epoch with two controllers, a decision under an old epoch."""
        epochs = facts["controller_epochs"]
        return (
            self._not_grown(epochs)
            .unionByName(self._two_controllers(epochs))
            .unionByName(self._late_decisions(epochs, facts["partition_states"]))
        )

    def _not_grown(self, epochs: DataFrame) -> DataFrame:
        by_zxid = in_order("run_id", by=("zxid",))
        rows = (
            epochs.where(F.col("source") != "broker")
            .withColumn("previous", F.lag("controller_epoch").over(by_zxid))
            .where(F.col("controller_epoch") <= F.col("previous"))
        )
        return finding(
            rows,
            self.name,
            message=(
                "Controller epochs strictly increase: epoch {controller_epoch} follows epoch {previous} at zxid {zxid}."
            ),
            evidence=F.array(event("controller_epochs", "previous", "controller_epoch", "broker", "zxid")),
        )

    def _two_controllers(self, epochs: DataFrame) -> DataFrame:
        rows = (
            epochs.groupBy("run_id", "controller_epoch")
            .agg(
                F.array_sort(F.collect_set("broker")).alias("brokers"),
                F.collect_list(
                    event("controller_epochs", "controller_epoch", "broker", "source", "session", "zk_version", "zxid")
                ).alias("events"),
            )
            .where(F.size("brokers") > 1)
        )
        return finding(
            rows,
            self.name,
            message=phrase(
                "Each controller epoch belongs to one controller: brokers {brokers} both have epoch "
                "{controller_epoch}.",
                brokers=F.array_join(F.col("brokers").cast("array<string>"), " and "),
            ),
            evidence=F.col("events"),
        )

    def _late_decisions(self, epochs: DataFrame, states: DataFrame) -> DataFrame:
        elected = epochs.where(F.col("source") != "broker").select(
            "run_id", "zxid", F.col("controller_epoch").alias("elected_epoch")
        )
        raises = F.col("previous_leader_epoch").isNull() | (F.col("leader_epoch") > F.col("previous_leader_epoch"))
        decides = F.coalesce(F.col("writer") == "controller", raises)
        rows = (
            states.where(decides)
            .unionByName(elected, allowMissingColumns=True)
            .withColumn("newest", F.max("elected_epoch").over(in_order("run_id", by=("zxid",))))
            .where(F.col("controller_epoch") < F.col("newest"))
        )
        return finding(
            rows,
            self.name,
            message=(
                "No decision is made under an older controller epoch: version {zk_version} of the state of "
                "{topic}-{partition} was decided under epoch {controller_epoch} at zxid {zxid}, when epoch {newest} "
                "had begun."
            ),
            evidence=F.array(
                event("partition_states", "zxid", "zk_version", "leader", "leader_epoch", "controller_epoch", "writer")
            ),
        )


PLUGIN: type[Check] = OneControllerPerEpoch
