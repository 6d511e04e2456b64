"""quorum-leader-resigns: a leader of the quorum of controllers does not go on for long after another one was elected.

A majority that elects another leader no longer fetches from the one before. That one resigns when no majority has
fetched from it for 1.5 times `controller.quorum.fetch.timeout.ms` (KIP-595, KAFKA-15489: before Kafka 3.7 it never
did), and then begins a later epoch within twice `controller.quorum.election.timeout.ms`; or it hears of a later epoch.
Cut links excuse nothing. A leader that stood still, was slow or had its clock set is not accused.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.disturbances import may_disturb, without_disturbed
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.quorum import REPLACED_LEADERS, replaced_leaders
from harness.contracts.checks import Check, Settings, Subject
from harness.contracts.faults import Disturbance


class QuorumLeaderResigns(Check):
    """Every leader of a quorum that was replaced, and how long it led afterwards."""

    name: ClassVar[str] = "quorum-leader-resigns"
    title: ClassVar[str] = "quorum-leader-resigns"
    promise: ClassVar[str] = (
        "A leader of the quorum of controllers resigns, at the latest, 1.5 times controller.quorum.fetch.timeout.ms, "
        "twice controller.quorum.election.timeout.ms and 20 s after another broker leads in a later epoch (KIP-595, "
        "KAFKA-15489)."
    )
    needs: ClassVar[tuple[str, ...]] = ("broker_logs",)
    reads: ClassVar[tuple[str, ...]] = ("quorum_terms", "fault_windows")
    about: ClassVar[Subject] = REPLACED_LEADERS

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a leader that led for too long."""
        replaced = replaced_leaders(settings, facts["quorum_terms"], facts["fault_windows"])
        rows = replaced.where(F.col("led_until_ns") > F.col("to_ns"))
        of_processes = facts["fault_windows"].where(may_disturb(Disturbance.PROCESSES))
        return finding(
            without_disturbed(rows, of_processes, since="since_ns", until="to_ns"),
            self.name,
            message=phrase(
                "A replaced leader of the quorum resigns: broker {broker} led in epoch {controller_epoch} for "
                "{for_s:.1f} s after broker {next_broker} had become leader in epoch {next_epoch}, of {most_s:.1f} s "
                "that it may take.",
                for_s=(F.col("led_until_ns") - F.col("since_ns")) / 1e9,
                most_s=(F.col("to_ns") - F.col("since_ns")) / 1e9,
            ),
            evidence=F.array(
                event("quorum_terms", "broker", "incarnation", "seq", "controller_epoch", "time_ns", "led_until_ns"),
                event("quorum_terms", "next_broker as broker", "next_epoch as controller_epoch", "since_ns as time_ns"),
            ),
        )


PLUGIN: type[Check] = QuorumLeaderResigns
