"""`__consumer_offsets` as the coordinator sees it: the local log to load from, and acks=all to write with."""

from dataclasses import dataclass

from harness.broker.coordinator.coordinator import OffsetsLog
from harness.broker.replicas.appending import AppendResult
from harness.broker.replicas.replica_manager import ReplicaManager
from harness.broker.topics import GROUP_METADATA_TOPIC

ACKS_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedOffsets:
    """Reads and writes the partitions of `__consumer_offsets` that this broker leads."""

    replicas: ReplicaManager
    commit_timeout_s: float

    def log(self, partition: int) -> OffsetsLog | None:
        """Return the local log of a partition, or None."""
        hosted = self.replicas.partition(GROUP_METADATA_TOPIC, partition)
        return None if hosted is None else hosted.log

    async def append(self, partition: int, records: bytes, *, client: str, correlation_id: int) -> AppendResult:
        """Append with acks=all and wait for the high watermark."""
        return await self.replicas.append(
            GROUP_METADATA_TOPIC,
            partition,
            records,
            acks=ACKS_ALL,
            timeout_s=self.commit_timeout_s,
            client=client,
            correlation_id=correlation_id,
            internal=True,
        )
