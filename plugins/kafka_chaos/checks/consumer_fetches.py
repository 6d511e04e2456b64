"""I24: consumers receive committed records only, from the leader epoch that they know.

A consumer is served below the high watermark of the serving broker (Kafka's `ReplicaManager.readFromLog`). One that
believes in another leader epoch is refused: it could read on where another history begins (KIP-320).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.broker.wire.sentinels import NO_EPOCH
from harness.contracts.checks import Check, Settings


class ConsumerFetches(Check):
    """Everything that brokers served to consumers, by leader epochs."""

    name: ClassVar[str] = "I24"
    title: ClassVar[str] = "I24 consumer-fetches"
    promise: ClassVar[str] = (
        "Consumers are served below the high watermark, and only in the leader epoch that they state (KIP-320)."
    )
    needs: ClassVar[tuple[str, ...]] = ("consumer_fetches",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a broker, its leader epoch, and the one that the consumers believed in."""
        client_epoch = F.col("current_leader_epoch")
        wrong = F.when(
            F.col("offset") >= F.col("high_watermark"),
            phrase("offset {offset} while its high watermark was {high_watermark}"),
        ).when(
            (client_epoch != NO_EPOCH) & (client_epoch != F.col("leader_epoch")),
            phrase("{answers} answers to consumers that stated epoch {current_leader_epoch}"),
        )
        rows = facts["consumer_fetches"].withColumn("wrong", wrong).where(F.col("wrong").isNotNull())
        return finding(
            rows,
            self.name,
            message=(
                "Consumers get committed records, in the epoch that they state: broker {broker}, in epoch "
                "{leader_epoch} of {topic}-{partition}, served {wrong}."
            ),
            evidence=F.array(
                event(
                    "consumer_fetches",
                    "broker",
                    "seq",
                    "leader_epoch",
                    "current_leader_epoch",
                    "offset",
                    "high_watermark",
                    "answers",
                )
            ),
        )


PLUGIN: type[Check] = ConsumerFetches
