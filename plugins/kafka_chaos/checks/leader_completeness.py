"""I10: every later leader and ISR member holds what was acknowledged with acks=all.

An acknowledged record is in every member of the ISR, and only members are elected, so every later leader has it at its
offset, and so has every member of the last ISR. A broker's log after the run stands for its log as a leader: later
truncation drops only what the next leader does not have. Of a compacted topic, the last committed record of each key
must be there.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import COMPACTIONS_TOLD, DUMPS_COMPLETE, UNIQUE_VALUES
from harness.analysis.check_helpers.compaction import SUPERSEDED, by_committed, not_superseded
from harness.analysis.check_helpers.findings import event, finding, last_isr, phrase, severity, with_unclean_election
from harness.analysis.check_helpers.records import acknowledged
from harness.analysis.frames import PARTITION_KEY, contains
from harness.analysis.subjects import RECORDS_PLACED
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.values import ACKS_ALL


class LeaderCompleteness(Check):
    """Records acknowledged by the whole ISR against the logs of the brokers that must hold them."""

    name: ClassVar[str] = "I10"
    title: ClassVar[str] = "I10 leader-completeness"
    promise: ClassVar[str] = (
        "A record acknowledged with acks=all is in the log of every later leader and ISR member, at its offset."
    )
    needs: ClassVar[tuple[str, ...]] = ("sends", "replicas", "leader_epochs")
    about: ClassVar[Subject] = RECORDS_PLACED
    reads: ClassVar[tuple[str, ...]] = ("replica_records", "partition_states", "topics", SUPERSEDED)
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, *DUMPS_COMPLETE, COMPACTIONS_TOLD)
    prefiltered: ClassVar[str] = (
        "A replica without an acknowledged record differs from sends in that block, all of which stays."
    )
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record that one or more brokers do not hold."""
        records = acknowledged(facts["sends"]).where(F.col("acks") == ACKS_ALL)
        holders = _holders(facts)
        owed = (
            records.join(holders.hint("shuffle_hash"), on=list(PARTITION_KEY), how="inner")
            .where(F.col("offset") >= F.col("log_start_offset"))
            .where(F.col("in_isr") | (F.col("leader_epoch") < F.col("last_led_epoch")))
        )
        missing = owed.join(facts["replica_records"], on=[*PARTITION_KEY, "broker", "offset", "value"], how="left_anti")
        rows = (
            not_superseded(missing, by_committed(facts[SUPERSEDED], settings))
            .groupBy(*PARTITION_KEY, "offset", "leader_epoch", "value", "process", "index", "invoke_ns")
            .agg(
                F.array_sort(F.collect_set("broker")).alias("brokers"),
                F.array_sort(
                    F.collect_list(event("replicas", "broker", "log_end_offset", "in_isr", "last_led_epoch"))
                ).alias("events"),
            )
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings)
        return finding(
            rows,
            self.name,
            at_ns="invoke_ns",
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=phrase(
                "A record acknowledged with acks=all is in every later leader's log: {value} was acknowledged at "
                "{topic}-{partition} offset {offset} in epoch {leader_epoch}, and is not there on broker {brokers}.",
                leader_epoch=F.coalesce(F.col("leader_epoch").cast("string"), F.lit("unknown")),
                brokers=F.array_join(F.col("brokers").cast("array<string>"), ", "),
            ),
            evidence=F.concat(
                F.array(event("sends", "process", "index", "value", "offset", "leader_epoch")), F.col("events")
            ),
        )


def _holders(facts: dict[str, DataFrame]) -> DataFrame:
    """One row a replica that must hold records: its log, its last leadership and whether it is in the last ISR.

    Columns: run, topic, partition, `broker`, `log_start_offset`, `log_end_offset`, `last_led_epoch` (null if it never
    led), and `in_isr` (true, or null). A log that a reassignment left behind is not among them: it has no leader.
    """
    last_leaderships = (
        facts["leader_epochs"]
        .groupBy(*PARTITION_KEY, F.col("leader").alias("broker"))
        .agg(F.max("leader_epoch").alias("last_led_epoch"))
    )
    key = [*PARTITION_KEY, "broker"]
    dumped = facts["replicas"].select(*key, "log_start_offset", "log_end_offset")
    assigned = facts["topics"].select("run_id", "topic", F.inline("assignment"))
    return (
        dumped.join(assigned, on=list(PARTITION_KEY), how="left")
        .where(F.coalesce(contains("replicas", F.col("broker")), F.lit(True)))
        .drop("replicas")
        .join(last_leaderships, on=key, how="left")
        .join(
            last_isr(facts["partition_states"], facts["topics"]).withColumn("in_isr", F.lit(True)), on=key, how="left"
        )
    )


PLUGIN: type[Check] = LeaderCompleteness
