"""I13: a replica that joins the ISR has everything committed and is alive.

A member of the ISR may lead next, so a follower joins only when it has everything below the high watermark and
everything that the leader had when its epoch began, which earlier leaders may have committed (KAFKA-7128). A follower
that is not registered at that moment was still served but cannot lead; Kafka allows that up to KAFKA-14140, so it is a
note.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import has_field
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.frames import PARTITION_KEY, contains
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Severity, Subject


class IsrAdmission(Check):
    """Every proposal of a larger ISR, and every larger ISR in ZooKeeper."""

    name: ClassVar[str] = "I13"
    title: ClassVar[str] = "I13 isr-admission"
    promise: ClassVar[str] = (
        "A follower joins the ISR while it is registered, with a log that reaches the high watermark and the leader "
        "epoch's start (KAFKA-7128)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims", "registrations")
    about: ClassVar[Subject] = rows_of("isr_changes", "changes of an ISR", "size(old_isr) > 0")
    reads: ClassVar[tuple[str, ...]] = ("isr_changes", "isr_proposals")
    judges_without: ClassVar[tuple[str, ...]] = ("broker_registered",)
    assumes: ClassVar[tuple[Assumption, ...]] = (has_field("ends", "isr_proposals"),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a follower that joins too early, and a note on one that is not registered."""
        return self._too_early(facts["isr_proposals"]).unionByName(
            self._absent(facts["isr_changes"], facts["registrations"])
        )

    def _too_early(self, proposals: DataFrame) -> DataFrame:
        least = F.greatest("high_watermark", "epoch_start_offset")
        rows = proposals.select(
            "*",
            F.explode(F.arrays_zip(F.col("new_isr").alias("broker_id"), F.col("ends").alias("end"))).alias("member"),
        ).where(~contains("old_isr", F.col("member.broker_id")) & (F.col("member.end") < least))
        return finding(
            rows,
            self.name,
            offset="member.end",
            message=(
                "A follower joins the ISR with all that is committed: broker {member.broker_id} was proposed for "
                "{topic}-{partition} in epoch {leader_epoch} with its log ending at {member.end}, the high watermark "
                "at {high_watermark} and the epoch's start at {epoch_start_offset}."
            ),
            evidence=F.array(
                event(
                    "isr_proposals",
                    "broker",
                    "incarnation",
                    "seq",
                    "old_isr",
                    "new_isr",
                    "ends",
                    "high_watermark",
                    "epoch_start_offset",
                )
            ),
        )

    def _absent(self, changes: DataFrame, registrations: DataFrame) -> DataFrame:
        joined = changes.where(F.size("old_isr") > 0).select(
            *PARTITION_KEY,
            "leader_epoch",
            "zxid",
            "zk_version",
            "old_isr",
            "new_isr",
            F.explode(F.array_except("new_isr", "old_isr")).alias("broker"),
        )
        alive = registrations.where(F.col("source") == "zookeeper").select(
            F.col("run_id").alias("its_run"), F.col("broker").alias("its_broker"), "czxid", "until_zxid"
        )
        same = (F.col("run_id") == F.col("its_run")) & (F.col("broker") == F.col("its_broker"))
        stood = F.col("zxid").between(F.col("czxid"), F.coalesce("until_zxid", F.col("zxid")))
        rows = joined.join(alive, on=same & stood, how="left_anti")
        return finding(
            rows,
            self.name,
            severity=F.lit(Severity.NOTE.value),
            message=(
                "A follower joins the ISR while it is registered: version {zk_version} of the state of "
                "{topic}-{partition} added broker {broker}, which was not registered."
            ),
            evidence=F.array(event("isr_changes", "zxid", "zk_version", "old_isr", "new_isr")),
        )


PLUGIN: type[Check] = IsrAdmission
