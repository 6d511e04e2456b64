"""int-nonmonotonic-poll: one poll returns the records of a partition in the order of their offsets.

A log is read from lower to higher offsets; a rebalance happens between polls.
"""

from typing import ClassVar

from pyspark.sql import DataFrame

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import finding
from harness.analysis.check_helpers.poll_steps import regressions, step_events
from harness.contracts.checks import Assumption, Check, Settings


class IntNonmonotonicPoll(Check):
    """Steps within one poll."""

    name: ClassVar[str] = "int-nonmonotonic-poll"
    title: ClassVar[str] = "int-nonmonotonic-poll"
    promise: ClassVar[str] = "One poll returns the records of a partition in the order of their offsets."
    needs: ClassVar[tuple[str, ...]] = ("polls",)
    reads: ClassVar[tuple[str, ...]] = ("poll_steps",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a step."""
        return finding(
            regressions(facts, within_poll=True),
            self.name,
            message=(
                "A poll returns records in the order of their offsets: one of {process} returned {topic}-{partition} "
                "offset {offset} after offset {previous_offset}."
            ),
            evidence=step_events(),
        )


PLUGIN: type[Check] = IntNonmonotonicPoll
