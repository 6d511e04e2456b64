"""int-nonmonotonic-poll: does one poll give the records of a partition out of order?

A log is read from lower to higher offsets; a rebalance happens between polls.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import finding, severity, unreadable, with_unclean_election
from harness.analysis.reading import regressions, shown
from harness.checks import Check, Settings


class IntNonmonotonicPoll:
    """Steps within one poll."""

    name: ClassVar[str] = "int-nonmonotonic-poll"
    promise: ClassVar[str] = "One poll gives the records of a partition in the order of their offsets."
    needs: ClassVar[tuple[str, ...]] = ("polls",)

    def unknown(self, facts: dict[str, DataFrame]) -> DataFrame | None:
        """The clients' history must be whole."""
        return unreadable(facts["evidence"], "operations/")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a step."""
        rows = regressions(facts, within_poll=True)
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="previous_leader_epoch")
        found = severity(self.name, settings, unclean=F.col("unclean"))
        return finding(
            rows,
            self.name,
            severity=found,
            message=F.format_string(
                "A poll gives a partition in order: that of %s gave %s-%d offset %d after offset %d.",
                "process",
                "topic",
                "partition",
                "offset",
                "previous_offset",
            ),
            evidence=shown(),
        )


PLUGIN: type[Check] = IntNonmonotonicPoll
