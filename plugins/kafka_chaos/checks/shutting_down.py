"""shutting-down: a broker counts as shutting down only after it has asked for that, in this registration.

A broker that is about to stop asks the controller to move its leaders away (Kafka's
`KafkaController.controlledShutdown`), and is not elected. A broker that returns is like any other: the
controller forgets with its registration that it was leaving (`ControllerContext.removeLiveBrokers`).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.contracts.checks import Check, Settings


class ShuttingDown(Check):
    """The brokers that elections leave out as they are leaving, beside what these have asked for."""

    name: ClassVar[str] = "shutting-down"
    title: ClassVar[str] = "shutting-down"
    promise: ClassVar[str] = (
        "A broker counts as shutting down only if it has asked for a controlled shutdown since it registered "
        "(KafkaController.controlledShutdown)."
    )
    needs: ClassVar[tuple[str, ...]] = ("beliefs", "registrations")
    fields: ClassVar[tuple[str, ...]] = ("leave_request",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an election that leaves out a broker that has not asked since it registered."""
        registered = (
            facts["registrations"]
            .where((F.col("source") == "zookeeper") & F.col("leaves_ns").isNull())
            .select("run_id", F.col("broker").alias("other"), "czxid")
        )
        rows = (
            facts["beliefs"]
            .withColumnRenamed("broker", "controller")
            .select("*", F.explode("czxids").alias("czxid"))
            .join(registered, on=["run_id", "czxid"], how="inner")
            .where(F.array_contains("leaving", F.col("other")))
        )
        return finding(
            rows,
            self.name,
            message=(
                "A broker counts as shutting down only after it has asked: controller {controller} left broker "
                "{other} out of the election of {topic}-{partition}, and broker {other} has not asked since its "
                "registration at zxid {czxid}."
            ),
            evidence=F.array(
                event("beliefs", "controller as broker", "incarnation", "seq", "controller_epoch", "alive", "leaving"),
                event("registrations", "other as broker", "czxid"),
            ),
        )


PLUGIN: type[Check] = ShuttingDown
