"""DeleteRecords: moves the starts of logs, and answers when every live replica has followed (KIP-107)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.broker.log.log import OffsetOutOfRange
from harness.broker.replicas.partition import Partition, PartitionError
from harness.broker.replicas.replicas import Replicas
from harness.broker.topics import INTERNAL_TOPICS
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET
from harness.values import TopicPartition

log = logging.getLogger(__name__)

HIGH_WATERMARK = -1
"""As offset: everything that is committed."""


class ToDelete(NamedTuple):
    """Everything before `offset` of one partition."""

    key: TopicPartition
    offset: int


@dataclass(slots=True, eq=False)
class Deletion:
    """The state of one partition of the request."""

    key: TopicPartition
    error: ErrorCode
    low_watermark: int = NO_OFFSET
    """Log start of the replica that is furthest behind."""
    partition: Partition | None = None
    required_offset: int = NO_OFFSET

    def settle(self, replicas: Replicas) -> bool:
        """Return whether every replica has followed, or the lead was lost before that."""
        if self.partition is None:
            return True
        if not self.partition.is_leader:
            offline = self.partition.offline
            self.error = ErrorCode.KAFKA_STORAGE_ERROR if offline else ErrorCode.NOT_LEADER_FOR_PARTITION
            self.low_watermark = NO_OFFSET
            return True
        self.low_watermark = self.partition.low_watermark(replicas.metadata.is_alive)
        if self.low_watermark < self.required_offset:
            return False
        self.error = ErrorCode.NONE
        return True


@dataclass(slots=True, eq=False)
class DelayedDelete:
    """A request that waits for the followers."""

    replicas: Replicas
    waiting: list[Deletion]

    def try_complete(self, _changed: TopicPartition) -> bool:
        """Whether no partition is left to wait for."""
        self.waiting = [each for each in self.waiting if not each.settle(self.replicas)]
        return not self.waiting


@dataclass(slots=True, kw_only=True)
class Deleter:
    """Carries out DeleteRecords."""

    replicas: Replicas

    async def delete(self, items: Sequence[ToDelete], timeout_s: float) -> list[Deletion]:
        """Return the result of each partition, in order, once all have ended or the time is over."""
        deletions = [self._delete(item) for item in items]
        waiting = [each for each in deletions if not each.settle(self.replicas)]
        if waiting:
            keys = [each.key for each in waiting]
            await self.replicas.deletions.wait(DelayedDelete(self.replicas, waiting), keys, timeout_s)
        return deletions

    def _delete(self, item: ToDelete) -> Deletion:
        topic, number = item.key
        if topic in INTERNAL_TOPICS:
            return Deletion(item.key, ErrorCode.INVALID_TOPIC_EXCEPTION)
        try:
            partition = self.replicas.led(topic, number)
            offset = partition.high_watermark if item.offset == HIGH_WATERMARK else item.offset
            partition.delete_records(offset)
        except PartitionError as error:
            return Deletion(item.key, error.error)
        except OffsetOutOfRange as error:
            log.info("delete_records.refused partition=%s-%d why=%s", topic, number, error)
            return Deletion(item.key, ErrorCode.OFFSET_OUT_OF_RANGE)
        except OSError as error:
            log.error("delete_records.failed partition=%s-%d error=%s", topic, number, error)
            return Deletion(item.key, ErrorCode.KAFKA_STORAGE_ERROR)
        log.info("delete_records.complete partition=%s-%d before=%d", topic, number, offset)
        self.replicas.deletions.check(item.key)
        return Deletion(item.key, ErrorCode.REQUEST_TIMED_OUT, partition=partition, required_offset=offset)
