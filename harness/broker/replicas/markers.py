"""Ending transactions: append a marker to every partition of a transaction that is led here, and wait for the ISR."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.broker.log.markers import Marker, marker_batch
from harness.broker.replicas.appending import Appender, ProduceParams, ToAppend
from harness.broker.replicas.replicas import Replicas
from harness.broker.wire.error_codes import ErrorCode
from harness.values import ACKS_ALL, OFFSETS_TOPIC, TopicPartition, value_class

OffsetsDecided = Callable[[int, Sequence[int], bool], None]
"""Called with a producer id, partitions of `__consumer_offsets` and whether its transaction commits.

By then the markers are committed: the offsets in the transaction count from now on, or never will.
"""


@value_class(frozen=True, slots=True, kw_only=True)
class TransactionEnd:
    """The outcome of a producer's transaction on some partitions."""

    producer_id: int
    producer_epoch: int
    marker: Marker
    partitions: Sequence[TopicPartition]


@dataclass(slots=True, kw_only=True)
class MarkerWriter:
    """Writes the decisions of transaction coordinators."""

    replicas: Replicas
    appender: Appender
    wall_ms: Callable[[], int]
    timeout_s: float
    """Deadline for the ISR (`request.timeout.ms`)."""
    _offsets_decided: list[OffsetsDecided] = field(default_factory=list)

    def on_offsets_decided(self, listener: OffsetsDecided) -> None:
        """Call `listener` for every marker in a partition of `__consumer_offsets`, once it is committed."""
        self._offsets_decided.append(listener)

    async def write(self, end: TransactionEnd, *, client: str, correlation_id: int) -> dict[TopicPartition, ErrorCode]:
        """Return the result of each partition, once all have ended; others are unknown, as in Kafka."""
        errors = dict.fromkeys(end.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        hosted = [key for key in errors if self.replicas.get(*key) is not None]
        batch = marker_batch(
            end.marker,
            producer_id=end.producer_id,
            producer_epoch=end.producer_epoch,
            timestamp_ms=self.wall_ms(),
        )
        params = ProduceParams(
            acks=ACKS_ALL, timeout_s=self.timeout_s, client=client, correlation_id=correlation_id, internal=True
        )
        results = await self.appender.append([ToAppend(key, batch) for key in hosted], params)
        errors |= {key: result.error for key, result in zip(hosted, results, strict=True)}
        decided = [
            number for (topic, number), error in errors.items() if topic == OFFSETS_TOPIC and error is ErrorCode.NONE
        ]
        for listener in self._offsets_decided if decided else ():
            listener(end.producer_id, decided, end.marker.commits)
        return errors
