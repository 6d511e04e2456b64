"""unseen: an acknowledged record that was not read yet is still in the log of every ISR member.

Such a record has a higher offset than everything that was read. The replicas' logs decide: if a member of the last ISR
holds it at its offset, the reader stopped too early, which is a note; if none does, it is lost, unless the topic was
compacted and a later record with its key replaces it.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES, WEAK_ACKS
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD, DUMPS_COMPLETE, UNIQUE_VALUES
from harness.analysis.check_helpers.compaction import SUPERSEDED, with_superseded
from harness.analysis.check_helpers.findings import finding, last_isr, phrase, severity, with_unclean_election
from harness.analysis.check_helpers.log_starts import decided, not_deleted
from harness.analysis.check_helpers.records import acks_text, send_and_last_read, unread
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.subjects import RECORDS_KEPT, RECORDS_PLACED
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Severity, Subject


class Unseen(Check):
    """Acknowledged records past the last one read, against the replicas' logs."""

    name: ClassVar[str] = "unseen"
    title: ClassVar[str] = "unseen"
    promise: ClassVar[str] = "An acknowledged record that was not read yet is in the log of every ISR member."
    needs: ClassVar[tuple[str, ...]] = ("sends", "replica_records", "partition_states")
    about: ClassVar[Subject] = RECORDS_PLACED
    covers: ClassVar[tuple[Subject, ...]] = (RECORDS_KEPT,)
    reads: ClassVar[tuple[str, ...]] = ("polls", "leader_epochs", SUPERSEDED, "replicas", "topics")
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE, *DUMPS_COMPLETE, COMPACTIONS_TOLD)
    prefiltered: ClassVar[str] = "As lost-write; the replicas that hold such a record are named in its own block."
    excused_by: ClassVar[tuple[Allowance, ...]] = (WEAK_ACKS, *LOSSES)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record: a note where it is in the logs, else a violation or an expected loss."""
        late = (
            unread(facts["sends"], facts["polls"])
            .withColumn("last_read_offset", F.coalesce("last_read_offset", F.lit(-1)))
            .where(F.col("offset") >= F.col("last_read_offset"))
        )
        record = [*PARTITION_KEY, "offset", "value"]
        held = (
            facts["replica_records"]
            .join(late, on=record, how="left_semi")
            .join(last_isr(facts["partition_states"], facts["topics"]), on=[*PARTITION_KEY, "broker"], how="left_semi")
            .select(*record, F.lit(True).alias("held"))
            .distinct()
        )
        rows = with_superseded(late.join(held, on=record, how="left"), facts[SUPERSEDED])
        rows = rows.where(F.coalesce("held", ~F.col(SUPERSEDED)))
        rows = not_deleted(rows, facts["replicas"], settings)
        rows = with_unclean_election(decided(rows, facts, settings), facts["leader_epochs"], settings)
        lost = severity(self.excused_by, settings, acks=F.col("acks"), unclean=F.col("unclean"))
        return finding(
            rows,
            self.name,
            at_ns="invoke_ns",
            severity=F.when(F.col("held"), Severity.NOTE.value).otherwise(lost),
            message=phrase(
                "An acknowledged record that was not read is still in the log: {value} was acknowledged (acks={acks}) "
                "at {topic}-{partition} offset {offset}, readers reached offset {last_read_offset}, and it is {held}.",
                acks=acks_text(),
                held=F.when(F.col("held"), "in the log, so only late").otherwise("in no log of the ISR, so lost"),
            ),
            evidence=send_and_last_read(),
        )


PLUGIN: type[Check] = Unseen
