"""shutting-down: a broker counts as shutting down only after it has asked for that, in this registration.

A broker that is about to stop asks the controller to move its leaders away (Kafka's
`KafkaController.controlledShutdown`), and is not elected. A broker that returns is like any other: the
controller forgets with its registration that it was leaving (`ControllerContext.removeLiveBrokers`). A broker
may also ask in a registration that the controller has not read yet: Kafka refuses only an older broker epoch.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
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
        registrations = (
            facts["registrations"]
            .where(F.col("source") == "zookeeper")
            .select("run_id", F.col("broker").alias("other"), "czxid", "leaves_ns")
        )
        registered = registrations.where(F.col("leaves_ns").isNull()).drop("leaves_ns")
        asked = (
            registrations.where(F.col("leaves_ns").isNotNull())
            .groupBy("run_id", "other")
            .agg(F.collect_list(F.struct("czxid", "leaves_ns")).alias("asked"))
        )
        rows = (
            facts["beliefs"]
            .withColumnRenamed("broker", "controller")
            .select("*", F.explode("czxids").alias("czxid"))
            .join(registered, on=["run_id", "czxid"], how="inner")
            .where(F.array_contains("leaving", F.col("other")))
            .join(asked, on=["run_id", "other"], how="left")
            .where(~F.coalesce(F.exists("asked", _is_later), F.lit(False)))
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


def _is_later(asked: Column) -> Column:
    """Whether a broker had asked in a later registration than its row's, when the controller decided."""
    return (asked["czxid"] > F.col("czxid")) & (asked["leaves_ns"] <= F.col("made_ns"))


PLUGIN: type[Check] = ShuttingDown
