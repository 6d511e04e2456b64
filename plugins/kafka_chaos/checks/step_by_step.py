"""step-by-step: what each broker, partition, group and transaction does next is a legal step of the protocol.

The model (`harness/model/`) walks the state-change log of every broker in its order, and ZooKeeper's history. For each
kind of subject it has a pure function that takes the state before and an event, and returns the state after or the rule
that is broken. It was written from Kafka's design, and sees what breaks no other promise.

What a system does not log is passed over, and behind a gap in a log nothing is known: there no step is accused.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.contracts.checks import Check, Settings


class StepByStep(Check):
    """Every step that was walked and is illegal."""

    name: ClassVar[str] = "step-by-step"
    title: ClassVar[str] = "step-by-step"
    promise: ClassVar[str] = (
        "Every step of a replica, leader, controller, group, transaction, deletion or reassignment is one that the "
        "protocol allows in its state (the rules' sources are classes of Kafka and KIPs)."
    )
    needs: ClassVar[tuple[str, ...]] = ("steps",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an illegal step."""
        return finding(
            facts["steps"].where(F.col("rule").isNotNull()),
            self.name,
            message="{sentence} ({rule}, {source}) Step: {step}. Before it, the {subject} {name} was {before}.",
            evidence=F.array(
                event("steps", "broker", "incarnation", "seq", "subject", "name", "rule", "sentence", "before", "step")
            ),
        )


PLUGIN: type[Check] = StepByStep
