"""I18: is a broker's registration the work of the session that it lives by?

`/brokers/ids/<id>` is ephemeral: whoever owns it keeps the broker in the cluster. A broker that takes the znode of its
earlier session for its own vanishes when that session ends, and nobody registers it again (KAFKA-1387, KAFKA-7165).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import event, finding, phrase
from harness.contracts.checks import Assumption, Check, Settings


def _unmatched(registrations: DataFrame) -> DataFrame:
    """The runs of which each registration is known from one side only."""
    sides = F.size(F.collect_set("source")).alias("sides")
    each = registrations.groupBy("run_id", "broker", "czxid").agg(sides)
    return each.groupBy("run_id").agg(F.max("sides").alias("sides")).where(F.col("sides") < 2)


class Registrations:
    """Every registration, as ZooKeeper holds it and as its broker believes."""

    name: ClassVar[str] = "I18"
    title: ClassVar[str] = "I18 one-session-per-broker"
    promise: ClassVar[str] = (
        "A broker id has one live session, and the ephemeral owner of its registration is that session (KAFKA-7165)."
    )
    needs: ClassVar[tuple[str, ...]] = ("registrations",)
    assumes: ClassVar[tuple[Assumption, ...]] = (
        Assumption(
            facts=("registrations",),
            broken=_unmatched,
            reason="no registration is told of by ZooKeeper and its broker",
        ),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a registration that belongs to another session than its broker's."""
        rows = (
            facts["registrations"]
            .groupBy("run_id", "broker", "czxid")
            .agg(
                F.array_sort(F.collect_set("session")).alias("sessions"),
                F.collect_list(event("registrations", "source", "broker", "czxid", "session", "until_zxid")).alias(
                    "events"
                ),
            )
            .where(F.size("sessions") > 1)
        )
        return finding(
            rows,
            self.name,
            message=phrase(
                "A broker's registration belongs to its session: that of broker {broker}, made at zxid {czxid}, is "
                "claimed by sessions {sessions}.",
                sessions=F.array_join("sessions", " and "),
            ),
            evidence=F.col("events"),
        )


PLUGIN: type[Check] = Registrations
