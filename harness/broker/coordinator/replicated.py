"""`__consumer_offsets` as the coordinator sees it: the local log to load from, and acks=all to write with."""

from dataclasses import dataclass

from harness.broker.coordinator.offsets_topic import OffsetsLog
from harness.broker.replicas.appending import Appender, AppendResult, ProduceParams, ToAppend
from harness.broker.replicas.replicas import Replicas
from harness.values import ACKS_ALL, OFFSETS_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedOffsets:
    """Reads and writes the partitions of `__consumer_offsets` that this broker leads."""

    replicas: Replicas
    appender: Appender
    commit_timeout_s: float

    def log(self, partition: int) -> OffsetsLog | None:
        """Return the local log of a partition, or None."""
        hosted = self.replicas.get(OFFSETS_TOPIC, partition)
        return None if hosted is None else hosted.log

    def high_watermark(self, partition: int) -> int:
        """Return up to where the local log is known to be committed."""
        hosted = self.replicas.get(OFFSETS_TOPIC, partition)
        return 0 if hosted is None else hosted.high_watermark

    async def append(self, partition: int, records: bytes, *, client: str, correlation_id: int) -> AppendResult:
        """Append with acks=all and wait for the high watermark."""
        params = ProduceParams(
            acks=ACKS_ALL,
            timeout_s=self.commit_timeout_s,
            client=client,
            correlation_id=correlation_id,
            internal=True,
        )
        (result,) = await self.appender.append([ToAppend((OFFSETS_TOPIC, partition), records)], params)
        return result
