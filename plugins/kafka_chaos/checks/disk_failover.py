"""I40: a leader whose disk refuses a write gives up the lead.

A broker whose disk refuses a write takes the replicas there offline at once, and notifies the controller, which elects
others (KIP-112, Kafka's `ReplicaManager.handleLogDirFailure`). So a leader answers once, or a few times in that moment,
that the disk failed, and does not lead after that. One that keeps answering so as the leader costs the partition every
write for as long as the disk is broken, although other replicas could lead. The duration is measured on the broker's
own clock, and is ignored if the broker was paused or throttled meanwhile.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.disturbances import may_disturb
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.contracts.faults import Disturbance

KAFKA_STORAGE_ERROR = 56
_LEADERSHIP = (*PARTITION_KEY, "broker", "leader_epoch")
LONGEST_S = 3.0
"""Far more than it takes to give up the lead, which waits for no other broker; a broken disk stays broken longer."""


class DiskFailover(Check):
    """Writes that leaders refused because of their disk, and for how long they still led."""

    name: ClassVar[str] = "I40"
    title: ClassVar[str] = "I40 disk-failover"
    promise: ClassVar[str] = "A leader whose disk refused a write does not go on to lead (KIP-112, ReplicaManager)."
    needs: ClassVar[tuple[str, ...]] = ("acknowledgements",)
    about: ClassVar[Subject] = rows_of("refusals", "refused batches")
    reads: ClassVar[tuple[str, ...]] = ("refusals", "fault_windows")
    assumes: ClassVar[tuple[Assumption, ...]] = ()
    fields: ClassVar[tuple[str, ...]] = ("produce_resp.error",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a leader and epoch that kept the lead."""
        of_disks = facts["refusals"].where((F.col("error") == KAFKA_STORAGE_ERROR) & (F.col("leader_epoch") >= 0))
        led_on_s = (F.max("to_ns") - F.min("from_ns")) / 1e9
        rows = of_disks.groupBy(*_LEADERSHIP).agg(
            led_on_s.alias("led_on_s"),
            F.sum("answers").alias("answers"),
            F.max("isr_size").alias("isr_size"),
            F.min("from_ns").alias("from_ns"),
            F.max("to_ns").alias("to_ns"),
        )
        rows = rows.join(_stood_still(rows, facts["fault_windows"]), on=list(_LEADERSHIP), how="left_anti")
        return finding(
            rows.where(F.col("led_on_s") > LONGEST_S),
            self.name,
            message=(
                "A leader whose disk fails gives up the lead: broker {broker}, leader of {topic}-{partition} in epoch "
                "{leader_epoch}, refused {answers} batches because of its disk, and led on for {led_on_s:.0f} s at "
                "least, with {isr_size} in the ISR."
            ),
            evidence=F.array(event("refusals", "broker", "leader_epoch", "answers", "led_on_s", "isr_size")),
        )


def _stood_still(rows: DataFrame, windows: DataFrame) -> DataFrame:
    """One row a leader and epoch whose broker was paused between its first refusal and its last."""
    still = windows.where(may_disturb(Disturbance.PROCESSES)).select(
        "run_id", F.explode("targets").alias("target"), "intended_ns", "healed_ns"
    )
    meanwhile = (F.col("intended_ns") <= F.col("to_ns")) & F.coalesce(
        F.col("healed_ns") >= F.col("from_ns"), F.lit(True)
    )
    of_broker = F.col("target") == F.col("broker").cast("string")
    return rows.join(still, on="run_id", how="inner").where(of_broker & meanwhile).select(*_LEADERSHIP).distinct()


PLUGIN: type[Check] = DiskFailover
