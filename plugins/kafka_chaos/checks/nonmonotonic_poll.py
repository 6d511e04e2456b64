"""nonmonotonic-poll: a reader's next poll returns higher offsets than its last one.

A reader that assigns a partition to itself and does not seek gets each offset once, in order. So does a member of a
group while it owns a partition. A rebalance may assign it again, from its last commit; that, or a step back while its
owner is unknown, is a note.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import finding, severity, with_unclean_election
from harness.analysis.check_helpers.poll_steps import note_if_moved, regressions, step_events, with_moves
from harness.contracts.checks import Allowance, Assumption, Check, Settings


class NonmonotonicPoll(Check):
    """Steps between two polls."""

    name: ClassVar[str] = "nonmonotonic-poll"
    title: ClassVar[str] = "nonmonotonic-poll"
    promise: ClassVar[str] = "A reader's next poll gives higher offsets than its last one."
    needs: ClassVar[tuple[str, ...]] = ("polls",)
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", "poll_steps", "ownerships")
    judges_without: ClassVar[tuple[str, ...]] = ("zookeeper",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a step."""
        rows = with_moves(regressions(facts, within_poll=False), facts["ownerships"])
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="previous_leader_epoch")
        level = severity(self.excused_by, settings, unclean=F.col("unclean"))
        return finding(
            rows,
            self.name,
            severity=note_if_moved(level),
            message=(
                "A reader does not go back between two polls: {process} went from {topic}-{partition} offset "
                "{previous_offset} to offset {offset}."
            ),
            evidence=step_events(),
        )


PLUGIN: type[Check] = NonmonotonicPoll
