"""poll-skip: a reader's next poll continues where the last one ended.

A reader that assigns a partition to itself gets every record from its position on. So does a member of a group while it
owns one. A rebalance may move it; what it misses then, or while its owner is unknown, is a note.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD
from harness.analysis.check_helpers.compaction import SUPERSEDED
from harness.analysis.check_helpers.findings import finding, severity, with_unclean_election
from harness.analysis.check_helpers.poll_steps import note_if_moved, skips, step_events, with_moves
from harness.analysis.subjects import STEPS_KEPT
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject


class PollSkip(Check):
    """Steps between two polls, against what others read."""

    name: ClassVar[str] = "poll-skip"
    title: ClassVar[str] = "poll-skip"
    promise: ClassVar[str] = (
        "A reader's next poll continues where its last one ended, and skips no record that others read."
    )
    needs: ClassVar[tuple[str, ...]] = ("polls",)
    covers: ClassVar[tuple[Subject, ...]] = (STEPS_KEPT,)
    reads: ClassVar[tuple[str, ...]] = ("sends", "replicas", "leader_epochs", "poll_steps", "ownerships", SUPERSEDED)
    judges_without: ClassVar[tuple[str, ...]] = ("replicas", "zookeeper")
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE, COMPACTIONS_TOLD)
    prefiltered: ClassVar[str] = (
        "A step's beginning is marked, so that what was read next after it stays, however far ahead."
    )
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a step."""
        rows = with_moves(skips(facts, settings, within_poll=False), facts["ownerships"])
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="previous_leader_epoch")
        level = severity(self.excused_by, settings, unclean=F.col("unclean"))
        return finding(
            rows,
            self.name,
            severity=note_if_moved(level),
            message=(
                "A reader skips no record between two polls: {process} went from {topic}-{partition} offset "
                "{previous_offset} to offset {offset}, and other readers read offset {skipped}."
            ),
            evidence=step_events(),
        )


PLUGIN: type[Check] = PollSkip
