"""lost-write: a reader that passes an acknowledged record has read it.

Consumers read each partition from its beginning, so an acknowledged record before the last one read that no consumer
read is gone, even if logs hold it. If they began elsewhere, a record counts only if one reader began before it and
read past it. In a compacted topic, a record that a later one with its key replaces does not count.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES, WEAK_ACKS
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD, UNIQUE_VALUES
from harness.analysis.check_helpers.compaction import SUPERSEDED, not_superseded
from harness.analysis.check_helpers.findings import finding, phrase, severity, with_unclean_election
from harness.analysis.check_helpers.log_starts import decided, not_deleted
from harness.analysis.check_helpers.records import (
    acks_text,
    passed_by_one,
    send_and_last_read,
    unread,
    with_others_there,
)
from harness.analysis.subjects import RECORDS_KEPT, RECORDS_READ
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject


class LostWrite(Check):
    """Acknowledged records against what all readers saw."""

    name: ClassVar[str] = "lost-write"
    title: ClassVar[str] = "lost-write"
    promise: ClassVar[str] = "A reader that reads past an acknowledged record has read it."
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    about: ClassVar[Subject] = RECORDS_READ
    covers: ClassVar[tuple[Subject, ...]] = (RECORDS_KEPT,)
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", SUPERSEDED, "replicas")
    judges_without: ClassVar[tuple[str, ...]] = ("replicas", "zookeeper")
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE, COMPACTIONS_TOLD)
    prefiltered: ClassVar[str] = (
        "For a value that was not read, sends differ from readers; and where readers of a partition came to stays."
    )
    excused_by: ClassVar[tuple[Allowance, ...]] = (WEAK_ACKS, *LOSSES)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record that was passed unseen."""
        rows = unread(facts["sends"], facts["polls"]).where(F.col("offset") < F.col("last_read_offset"))
        rows = rows.where(F.lit(settings.read_from_start) | passed_by_one(F.col("offset")))
        rows = not_deleted(not_superseded(rows, facts[SUPERSEDED]), facts["replicas"], settings)
        rows = with_others_there(decided(rows, facts, settings), facts["polls"])
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="since")
        return finding(
            rows,
            self.name,
            at_ns="invoke_ns",
            severity=severity(self.excused_by, settings, acks=F.col("acks"), unclean=F.col("unclean")),
            message=phrase(
                "A reader that passes an acknowledged record reads it: {value} was acknowledged (acks={acks}) at "
                "{topic}-{partition} offset {offset}, readers reached offset {last_read_offset}, and no reader read "
                "it.",
                acks=acks_text(),
            ),
            evidence=send_and_last_read(),
        )


PLUGIN: type[Check] = LostWrite
