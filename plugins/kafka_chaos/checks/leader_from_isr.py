"""I4: a leader is elected from the ISR, unless unclean election was allowed then.

An acknowledged record is in every member of the ISR, so electing a member loses nothing (a clean election). A replica
from outside may lead only where `unclean.leader.election.enable` or an administrator allows it (KIP-106), and the
controller must know that it did so. ZooKeeper's history has the ISR, and the topic's configuration between the state
before and the decision; if the topic uses the broker's default, the controller's log has it, and without such a log,
the scenario.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, ids, phrase, severity
from harness.analysis.frames import PARTITION_KEY, contains, in_order
from harness.contracts.checks import Allowance, Check, Settings

_ADMINISTRATOR = "admin"
"""What makes a controller elect uncleanly whatever the configuration says (ElectLeaders, KIP-460)."""


class LeaderFromIsr(Check):
    """Every leader that took over, against the ISR before it; where that is not known, it is not judged."""

    name: ClassVar[str] = "I4"
    title: ClassVar[str] = "I4 leader-from-isr"
    promise: ClassVar[str] = (
        "A leader is elected from the ISR before it; from outside only where unclean election is allowed (KIP-106)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leader_epochs",)
    reads: ClassVar[tuple[str, ...]] = ("partition_states", "elections", "topic_configs")
    judges_without: ClassVar[tuple[str, ...]] = ("election",)
    excused_by: ClassVar[tuple[Allowance, ...]] = (
        Allowance(
            reason="unclean election was allowed there (KIP-106), or an administrator asked for it (KIP-460)",
            unclean_election=True,
        ),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an unclean election, expected where it was allowed, and one that its controller called clean."""
        return self._unclean(facts, settings).unionByName(self._not_flagged(facts["elections"]))

    def _unclean(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        key = [*PARTITION_KEY, "leader_epoch", "leader"]
        requested = (
            facts["elections"]
            .where(F.col("trigger") == _ADMINISTRATOR)
            .select(*key, F.lit(True).alias("requested"))
            .distinct()
        )
        rows = (
            facts["leader_epochs"]
            .where("unclean")
            .join(_configured(facts), on=[*PARTITION_KEY, "zxid"], how="left")
            .join(requested, on=key, how="left")
        )
        allowed = F.coalesce("requested", "configured", "unclean_allowed", F.lit(settings.unclean_leader_election))
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, unclean=allowed),
            message=phrase(
                "A leader is elected from the ISR before it: broker {leader}, not in it, was elected for "
                "{topic}-{partition} in epoch {leader_epoch}, and unclean election was {allowed}.",
                allowed=F.when(allowed, "allowed").otherwise("not allowed"),
            ),
            evidence=F.array(
                event("leader_epochs", "leader", "leader_epoch", "isr", "zk_version", "zxid", "unclean_allowed")
            ),
        )

    def _not_flagged(self, elections: DataFrame) -> DataFrame:
        outside = ~contains("previous_isr", F.col("leader"))
        rows = elections.where(outside & ~F.col("unclean"))
        return finding(
            rows,
            self.name,
            message=phrase(
                "An unclean election is marked as unclean: controller {broker} elected broker {leader} for "
                "{topic}-{partition} in epoch {leader_epoch} from outside the ISR {previous_isr} and marked the "
                "election as clean.",
                previous_isr=ids("previous_isr"),
            ),
            evidence=F.array(event("elections", "broker", "seq", "strategy", "previous_isr", "leader", "unclean")),
        )


def _configured(facts: dict[str, DataFrame]) -> DataFrame:
    """One row a version of a state whose topic had a setting of its own: `configured`, whether any allowed it.

    Every configuration counts that held at some time since the version before: the controller reads it in between.
    """
    before = F.lag("zxid").over(in_order(*PARTITION_KEY, by=("zxid",)))
    states = facts["partition_states"].select(*PARTITION_KEY, "zxid", before.alias("before_zxid"))
    configs = facts["topic_configs"].select(
        "run_id", "topic", F.col("zxid").alias("from_zxid"), "until_zxid", F.col("unclean_allowed").alias("own")
    )
    over = F.coalesce(F.col("until_zxid") <= F.col("before_zxid"), F.lit(False))
    return (
        states.join(configs, on=["run_id", "topic"], how="inner")
        .where((F.col("from_zxid") < F.col("zxid")) & ~over)
        .groupBy(*PARTITION_KEY, "zxid")
        .agg(F.bool_or("own").alias("configured"), F.bool_and(F.col("own").isNotNull()).alias("always"))
        .where("always")
        .drop("always")
    )


PLUGIN: type[Check] = LeaderFromIsr
