"""I4: was every leader chosen from the ISR before it, unless the configuration allowed more at that instant?

What is acknowledged is in every member of the ISR, so whoever is elected from it loses nothing (a clean election). A
replica from outside may lead only where `unclean.leader.election.enable` or an administrator allows it (KIP-106), and
the controller must know that it did so. ZooKeeper's history says who was in the ISR; the controller's log says what the
configuration allowed when it read it, and where nobody logged that, the scenario does.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import event, finding, ids
from harness.checks import Check, Settings, Severity


class CleanElections:
    """Every leader that took over, against the ISR before it."""

    name: ClassVar[str] = "I4"
    promise: ClassVar[str] = (
        "A leader is elected from the ISR before it; from outside only where unclean election is allowed (KIP-106)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leader_epochs",)

    def unknown(self, facts: dict[str, DataFrame]) -> DataFrame | None:
        """Nothing to assume: an epoch of which it cannot be told whether it began cleanly is not judged."""
        return None

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an unclean election, expected where it was allowed, and one that its controller called clean."""
        return self._unclean(facts["leader_epochs"], settings).unionByName(self._not_flagged(facts["elections"]))

    def _unclean(self, epochs: DataFrame, settings: Settings) -> DataFrame:
        allowed = F.coalesce("unclean_allowed", F.lit(settings.unclean_leader_election))
        return finding(
            epochs.where("unclean"),
            self.name,
            severity=F.when(allowed, Severity.EXPECTED.value).otherwise(Severity.VIOLATION.value),
            message=F.format_string(
                "A leader is elected from the ISR before it: broker %d, not in it, was elected for %s-%d in epoch %d, "
                "and unclean election was %s.",
                "leader",
                "topic",
                "partition",
                "leader_epoch",
                F.when(allowed, "allowed").otherwise("not allowed"),
            ),
            evidence=F.array(
                event("leader_epochs", "leader", "leader_epoch", "isr", "zk_version", "zxid", "unclean_allowed")
            ),
        )

    def _not_flagged(self, elections: DataFrame) -> DataFrame:
        outside = ~F.array_contains("previous_isr", F.col("leader"))
        rows = elections.where(F.col("leader").isNotNull() & outside & ~F.col("unclean"))
        return finding(
            rows,
            self.name,
            severity=F.lit(Severity.VIOLATION.value),
            message=F.format_string(
                "An unclean election is known as one: controller %d elected broker %d for %s-%d in epoch %d from "
                "outside the ISR %s and called it clean.",
                "broker",
                "leader",
                "topic",
                "partition",
                "leader_epoch",
                ids("previous_isr"),
            ),
            evidence=F.array(event("elections", "broker", "seq", "strategy", "previous_isr", "leader", "unclean")),
        )


PLUGIN: type[Check] = CleanElections
