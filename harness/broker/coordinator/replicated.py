"""A coordinator's topic: the local log to load from, and writes with acks=all."""

from dataclasses import dataclass

from harness.broker.coordinator.topic import CoordinatorLog
from harness.broker.log.verification import Verification
from harness.broker.replicas.appending import Appender, AppendResult, ProduceParams, ToAppend
from harness.broker.replicas.replicas import Replicas
from harness.values import ACKS_ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedTopic:
    """Reads and writes the partitions of one topic that this broker leads."""

    topic: str
    replicas: Replicas
    appender: Appender
    timeout_s: float
    """How long an append waits for the in-sync replicas, by default."""

    def log(self, partition: int) -> CoordinatorLog | None:
        """Return the local log of a partition, or None."""
        hosted = self.replicas.get(self.topic, partition)
        return None if hosted is None else hosted.log

    def high_watermark(self, partition: int) -> int:
        """Return the committed end of the local log."""
        hosted = self.replicas.get(self.topic, partition)
        return 0 if hosted is None else hosted.high_watermark

    async def append(
        self,
        partition: int,
        records: bytes,
        *,
        client: str,
        correlation_id: int,
        timeout_s: float | None = None,
        verification: Verification | None = None,
    ) -> AppendResult:
        """Append with acks=all and wait for the high watermark."""
        params = ProduceParams(
            acks=ACKS_ALL,
            timeout_s=self.timeout_s if timeout_s is None else timeout_s,
            client=client,
            correlation_id=correlation_id,
            internal=True,
        )
        (result,) = await self.appender.append([ToAppend((self.topic, partition), records, verification)], params)
        return result
