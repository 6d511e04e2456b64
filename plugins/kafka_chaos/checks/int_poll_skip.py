"""int-poll-skip: one poll returns every record between its first and its last.

A poll gives records of a partition from the reader's position on without gap; a rebalance happens between polls.
"""

from typing import ClassVar

from pyspark.sql import DataFrame

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD
from harness.analysis.check_helpers.compaction import SUPERSEDED
from harness.analysis.check_helpers.findings import finding
from harness.analysis.check_helpers.poll_steps import skips, step_events
from harness.analysis.subjects import STEPS_KEPT
from harness.contracts.checks import Assumption, Check, Settings, Subject


class IntPollSkip(Check):
    """Steps within one poll, against what others read."""

    name: ClassVar[str] = "int-poll-skip"
    title: ClassVar[str] = "int-poll-skip"
    promise: ClassVar[str] = (
        "One poll returns every record of a partition between the first and the last that it returns."
    )
    needs: ClassVar[tuple[str, ...]] = ("polls",)
    covers: ClassVar[tuple[Subject, ...]] = (STEPS_KEPT,)
    reads: ClassVar[tuple[str, ...]] = ("sends", "replicas", "poll_steps", SUPERSEDED)
    judges_without: ClassVar[tuple[str, ...]] = ("replicas", "zookeeper")
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE, COMPACTIONS_TOLD)
    prefiltered: ClassVar[str] = (
        "A step's beginning is marked, so that what was read next after it stays, however far ahead."
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a step."""
        return finding(
            skips(facts, settings, within_poll=True),
            self.name,
            message=(
                "A poll skips no record: one of {process} returned {topic}-{partition} offset {offset} after offset "
                "{previous_offset}, and other readers read offset {skipped}."
            ),
            evidence=step_events(),
        )


PLUGIN: type[Check] = IntPollSkip
