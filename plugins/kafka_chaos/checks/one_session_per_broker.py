"""I18: a broker id has one live session, and that session owns its registration.

`/brokers/ids/<id>` is ephemeral: the session that owns it keeps the broker in the cluster. A broker that takes the
znode of its earlier session for its own disappears when that session ends, and does not register again (KAFKA-1387,
KAFKA-7165). Where brokers do not log the transaction of their registration (Kafka before 2.2), their session must own
one.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.subjects import REGISTRATIONS_MATCHED
from harness.contracts.checks import Assumption, Check, Settings, Subject


def _unmatched(registrations: DataFrame) -> DataFrame:
    """The runs in which each registration is known from one side only."""
    sides = F.size(F.collect_set("source")).alias("sides")
    each = registrations.groupBy("run_id", "broker", "czxid").agg(sides)
    return each.groupBy("run_id").agg(F.max("sides").alias("sides")).where(F.col("sides") < 2)


class OneSessionPerBroker(Check):
    """Every registration, in ZooKeeper and by its broker's log."""

    name: ClassVar[str] = "I18"
    title: ClassVar[str] = "I18 one-session-per-broker"
    promise: ClassVar[str] = (
        "A broker id has one live session, and the ephemeral owner of its registration is that session (KAFKA-7165)."
    )
    needs: ClassVar[tuple[str, ...]] = ("registrations",)
    covers: ClassVar[tuple[Subject, ...]] = (REGISTRATIONS_MATCHED,)
    assumes: ClassVar[tuple[Assumption, ...]] = (
        Assumption(
            facts=("registrations",),
            broken=_unmatched,
            reason="no registration is in the evidence of both ZooKeeper and its broker",
        ),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a registration of another session than its broker's, and one a session that has none."""
        return self._claimed_by_two(facts["registrations"]).unionByName(self._of_nobody(facts["registrations"]))

    def _claimed_by_two(self, registrations: DataFrame) -> DataFrame:
        rows = (
            registrations.where(F.col("czxid").isNotNull())
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
                "A broker's registration belongs to its session: sessions {sessions} claim the registration of "
                "broker {broker} of zxid {czxid}.",
                sessions=F.array_join("sessions", " and "),
            ),
            evidence=F.col("events"),
        )

    def _of_nobody(self, registrations: DataFrame) -> DataFrame:
        return finding(
            registrations.where(F.col("czxid").isNull() & (F.col("session") != "")),
            self.name,
            message=(
                "A broker's registration belongs to its session: broker {broker} says that it registered in session "
                "{session}, which owns no registration of it."
            ),
            evidence=F.array(event("registrations", "source", "broker", "session")),
        )


PLUGIN: type[Check] = OneSessionPerBroker
