"""live-brokers: a controller acts on the brokers that are registered.

ZooKeeper has the truth. A notification makes the controller read all registrations again (Kafka's
`KafkaController.processBrokerChange`; at a failover `initializeControllerContext`). The read is at most as old as the
beginning of that event, which is the election at a failover, and later decisions follow from it: no election and no
UpdateMetadata takes a broker that was gone for alive, and none leaves out a broker that was there. While the controller
handles a change it may still use the read before, as it handles brokers that came before those that went.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.disturbances import may_disturb
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.contracts.checks import Check, Settings
from harness.contracts.faults import Disturbance

MARGIN_NS = 1_000_000_000
"""By so much a server of ZooKeeper may be behind its leader, and its wall clock off."""
_LINE = ("run_id", "controller", "incarnation", "seq")


class LiveBrokers(Check):
    """The brokers by which controllers go, beside what they have read, and that beside the registrations."""

    name: ClassVar[str] = "live-brokers"
    title: ClassVar[str] = "live-brokers"
    promise: ClassVar[str] = (
        "A controller elects by, and sends to metadata caches, the brokers that were registered when it last read "
        "the registrations (KafkaController.processBrokerChange)."
    )
    needs: ClassVar[tuple[str, ...]] = ("beliefs", "registrations")
    reads: ClassVar[tuple[str, ...]] = ("controller_passes", "fault_windows")
    fields: ClassVar[tuple[str, ...]] = ("ctl_send.live_brokers", "ctl_send.queued_ms")
    judges_without: ClassVar[tuple[str, ...]] = ("controller_elected",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a broker that a controller has wrong in one line."""
        # Rows that brokers write have no times, so no comparison below holds for them.
        held = facts["registrations"].select(
            "run_id", F.col("broker").alias("other"), "czxid", F.col("time_ns").alias("from_ns"), "until_ns", "seen_ns"
        )
        beliefs = facts["beliefs"].withColumnRenamed("broker", "controller")
        passes = facts["controller_passes"].withColumnRenamed("broker", "controller")
        return (
            self._believed(beliefs, facts["fault_windows"])
            .unionByName(self._read_gone(passes, held))
            .unionByName(self._not_read(passes, held))
        )

    def _believed(self, beliefs: DataFrame, windows: DataFrame) -> DataFrame:
        """The brokers that a decision and the reads of the registrations do not share."""
        disks = (
            windows.where(may_disturb(Disturbance.DISKS))
            .select("run_id", F.explode("targets").alias("target"))
            .groupBy("run_id")
            .agg(F.collect_set(F.col("target").try_cast("int")).alias("of_disks"))
        )
        none = F.array().cast("array<int>")
        counted = F.concat("alive", F.coalesce("leaving", none), F.coalesce("of_disks", none))
        rows = (
            beliefs.join(disks, on="run_id", how="left")
            .withColumn("gone", F.array_except("alive", "possible"))
            .withColumn("left_out", F.array_except("certain", counted))
            .where((F.size("gone") > 0) | (F.size("left_out") > 0))
        )
        election = phrase("the election of {topic}-{partition} by controller {controller}")
        metadata = phrase("UpdateMetadata of controller {controller}")
        wrong = F.concat_ws(
            " and ",
            F.when(F.size("gone") > 0, phrase("takes {gone} for alive", gone=ids("gone"))),
            F.when(F.size("left_out") > 0, phrase("leaves out {left_out}", left_out=ids("left_out"))),
        )
        return finding(
            rows,
            self.name,
            message=phrase(
                "A controller acts on the registered brokers: {what} {wrong}; {age:.1f} s before the controller had "
                "read that {possible} are registered.",
                what=F.when(F.col("acted") == "election", election).otherwise(metadata),
                wrong=wrong,
                age=(F.col("made_ns") - F.col("read_ns")) / 1e9,
                possible=ids("possible"),
            ),
            evidence=F.array(
                event("beliefs", *_SHOWN, "alive", "leaving"), event("controller_passes", "read_ns", "certain")
            ),
        )

    def _read_gone(self, passes: DataFrame, held: DataFrame) -> DataFrame:
        """The registrations that a controller found although they had ended."""
        rows = (
            passes.select(*_LINE, "name", "began_ns", F.explode("czxids").alias("czxid"))
            .join(held, on=["run_id", "czxid"], how="inner")
            .where(F.col("until_ns") + MARGIN_NS < F.col("began_ns"))
        )
        return self._of_reads(rows, "found broker {other}, whose registration had ended {s:.1f} s before", "until_ns")

    def _not_read(self, passes: DataFrame, held: DataFrame) -> DataFrame:
        """The brokers that were registered all the time and that a controller did not find.

        What was registered after the last transaction of ZooKeeper's history is not known: brokers log on when it is
        copied, and stop one after another.
        """
        stays = F.col("seen_ns") > F.col("time_ns") + MARGIN_NS
        rows = (
            passes.join(held, on="run_id", how="inner")
            .where((F.col("from_ns") + MARGIN_NS < F.col("began_ns")) & stays)
            .where(~F.array_contains("brokers", F.col("other")))
        )
        return self._of_reads(rows, "did not find broker {other}, registered {s:.1f} s before", "from_ns")

    def _of_reads(self, rows: DataFrame, wrong: str, since: str) -> DataFrame:
        message = f"A controller reads the current registrations: in a {{name}} controller {{controller}} {wrong}."
        return finding(
            rows,
            self.name,
            message=phrase(message, s=(F.col("began_ns") - F.col(since)) / 1e9),
            evidence=F.array(
                event("controller_passes", "controller as broker", "incarnation", "seq", "name"),
                event("registrations", "other as broker", "czxid", "from_ns", "until_ns"),
            ),
        )


_SHOWN = ("controller as broker", "incarnation", "seq", "acted", "controller_epoch", "topic", "partition", "made_ns")

PLUGIN: type[Check] = LiveBrokers
