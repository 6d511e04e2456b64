"""I31: after the last heal brokers register, partitions get leaders, and replicas join the ISR.

The configuration bounds every wait of recovery: until a session expires (`zookeeper.session.timeout.ms`), until a
follower leaves the ISR (`replica.lag.time.max.ms`), until a request times out. After that nothing more happens, and
what is missing stays missing. What the faults have left beyond repair is a note.
"""

from typing import ClassVar

from pyspark.sql import DataFrame

from harness.analysis.check_helpers.liveness import OfLiveness, not_starved
from harness.analysis.subjects import signs_of
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.store.history import Sign


class Wholeness(OfLiveness, Check):
    """Signs of life in ZooKeeper."""

    name: ClassVar[str] = "I31"
    title: ClassVar[str] = "I31 wholeness"
    promise: ClassVar[str] = (
        "Without faults after the last heal, every running broker registers, every partition gets a leader, and every "
        "live replica joins the ISR (Kafka's KafkaController and Partition.maybeExpandIsr)."
    )
    needs: ClassVar[tuple[str, ...]] = ("liveness",)
    covers: ClassVar[tuple[Subject, ...]] = (signs_of(Sign.LED, Sign.IN_SYNC),)
    signs: ClassVar[tuple[Sign, ...]] = (Sign.REGISTERED, Sign.LED, Sign.IN_SYNC)
    assumes: ClassVar[tuple[Assumption, ...]] = (not_starved(signs),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a broker or partition."""
        return self.missing(facts["liveness"], "A cluster without faults becomes whole")


PLUGIN: type[Check] = Wholeness
