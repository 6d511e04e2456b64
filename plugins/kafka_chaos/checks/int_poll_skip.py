"""int-poll-skip: does one poll leave out records that lie between those it gives?

A poll gives records of a partition from the reader's position on without gap; a rebalance happens between polls.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import finding, unreadable
from harness.analysis.poll_steps import skips, step_events
from harness.contracts.checks import Check, Settings, Severity


class IntPollSkip:
    """Steps within one poll, against what others read."""

    name: ClassVar[str] = "int-poll-skip"
    title: ClassVar[str] = "int-poll-skip"
    promise: ClassVar[str] = "One poll gives every record of a partition between the first and the last that it gives."
    needs: ClassVar[tuple[str, ...]] = ("polls",)
    reads: ClassVar[tuple[str, ...]] = ("replicas", "poll_steps")

    def unknown(self, facts: dict[str, DataFrame]) -> DataFrame | None:
        """The clients' history must be whole."""
        return unreadable(facts["evidence"], "operations/")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a step."""
        return finding(
            skips(facts, within_poll=True),
            self.name,
            severity=F.lit(Severity.VIOLATION.value),
            message=F.format_string(
                "A poll leaves nothing out: that of %s gave %s-%d offset %d after offset %d, and offset %d was "
                "read by others.",
                "process",
                "topic",
                "partition",
                "offset",
                "previous_offset",
                "skipped",
            ),
            evidence=step_events(),
        )


PLUGIN: type[Check] = IntPollSkip
