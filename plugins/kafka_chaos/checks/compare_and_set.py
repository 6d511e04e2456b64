"""I5: every write of a partition's state is a compare-and-set.

Controller and leader both write the state znode. No decision is lost, because each write names the version that it
replaces, and the version grows by one with each (Kafka's `KafkaZkClient.setLeaderAndIsr`, `ReplicationUtils`).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.contracts.checks import Assumption, Check, Settings


class CompareAndSet(Check):
    """Every successful write, and every step from one version to the next."""

    name: ClassVar[str] = "I5"
    title: ClassVar[str] = "I5 compare-and-set"
    promise: ClassVar[str] = (
        "Every write of a partition's state replaces exactly the version that its writer knew (ReplicationUtils)."
    )
    needs: ClassVar[tuple[str, ...]] = ("state_writes", "partition_states")
    assumes: ClassVar[tuple[Assumption, ...]] = (
        Assumption(
            facts=("partition_states",),
            broken=lambda states: states.where(F.col("zk_version") > F.col("previous_zk_version") + 1),
            reason=(
                "ZooKeeper's history of {topic}-{partition} has a gap: version {zk_version} follows version "
                "{previous_zk_version}"
            ),
        ),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a write that replaced another version than it named, or any at all."""
        replaced = (F.col("op") == "set") & (F.col("zk_version") != F.col("expected_version") + 1)
        unconditional = (F.col("op") == "set") & (F.col("expected_version") < 0)
        rows = facts["state_writes"].where((F.col("result") == "ok") & (replaced | unconditional))
        return finding(
            rows,
            self.name,
            message=phrase(
                "Every write of a partition's state replaces the version that its writer knew: broker {broker} as "
                "{writer} wrote version {zk_version} of the state of {topic}-{partition} over {expected}.",
                expected=F.when(unconditional, "any version").otherwise(phrase("version {expected_version}")),
            ),
            evidence=F.array(
                event("state_writes", "broker", "incarnation", "seq", "writer", "expected_version", "zk_version")
            ),
        )


PLUGIN: type[Check] = CompareAndSet
