"""I23: is a topic that was deleted gone altogether?

The controller removes the topic's znode last but for its configuration and the request, when every replica has answered
that its log is gone (Kafka's `TopicDeletionManager.completeDeleteTopic`). So once the znode is gone and no request is
left, no configuration and no log directory may be there. A deletion that still waits for a dead broker is not judged.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.findings import event, finding, phrase
from harness.contracts.checks import Check, Settings


class DeletedTopics:
    """Every topic whose znode is gone, and what is left of it."""

    name: ClassVar[str] = "I23"
    title: ClassVar[str] = "I23 deleted-topics"
    promise: ClassVar[str] = (
        "A deleted topic leaves no configuration and no log behind (TopicDeletionManager.completeDeleteTopic)."
    )
    needs: ClassVar[tuple[str, ...]] = ("topics", "replicas")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a log or a configuration that was left behind."""
        deleted = facts["topics"].where(~F.col("present") & ~F.col("deletion_pending"))
        logs = facts["replicas"].select(
            "run_id",
            "topic",
            "partition",
            phrase("the log of partition {partition} on broker {broker}").alias("remainder"),
            event("replicas", "broker", "partition", "log_start_offset", "log_end_offset").alias("remainder_event"),
        )
        remains = deleted.join(logs, on=["run_id", "topic"], how="inner").unionByName(
            deleted.where("configured").select(
                "*", F.lit("its configuration").alias("remainder"), F.lit("{}").alias("remainder_event")
            ),
            allowMissingColumns=True,
        )
        return finding(
            remains,
            self.name,
            message="A deleted topic leaves nothing behind: of {topic} {remainder} is still there.",
            evidence=F.array(event("topics", "topic", "zxid", "configured"), F.col("remainder_event")),
        )


PLUGIN: type[Check] = DeletedTopics
