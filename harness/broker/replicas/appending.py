"""Producing: append to the logs led here, and with acks=all wait until the in-sync replicas have the records."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.broker.log.batch import MAGIC, MAGIC_AT, CorruptBatch, first_header, next_batch_size
from harness.broker.log.compression import CODECS_BEFORE_ZSTD
from harness.broker.log.log import AppendInfo, InvalidRecords
from harness.broker.log.verification import Verification
from harness.broker.replicas.partition import Partition, PartitionError
from harness.broker.replicas.replicas import Replicas, now_s
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.topics import INTERNAL_TOPICS
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import NO_EPOCH, NO_TIMESTAMP
from harness.events import NO_OFFSET, ProduceResponse
from harness.values import ACKS_ALL, TopicPartition, value_class

log = logging.getLogger(__name__)

VALID_ACKS = (ACKS_ALL, 0, 1)
WITHOUT_LOG_START = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
"""Refusals that do not name the start of the log (`ReplicaManager.appendToLocalLog`)."""


class ToAppend(NamedTuple):
    """The records for one partition."""

    key: TopicPartition
    records: bytes
    verification: Verification | None = None
    """Of the transaction that the records begin (`TransactionVerifier`)."""


@value_class(frozen=True, slots=True, kw_only=True)
class ProduceParams:
    """Parameters of all partitions of one request."""

    acks: int
    timeout_s: float
    client: str
    correlation_id: int
    internal: bool = False
    """Whether a coordinator writes: only then are internal topics written to, and markers."""
    knows_zstd: bool = True
    """Whether batches may be compressed with zstd: not from older clients (KIP-110)."""


@value_class(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """The result of one partition of a produce request."""

    error: ErrorCode
    base_offset: int = NO_OFFSET
    last_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    log_append_time: int = NO_TIMESTAMP
    """-1 where timestamps are the producer's; Kafka answers a duplicate with the batch's largest timestamp."""


class Standing(NamedTuple):
    """A leader's state when an append was decided; it may have changed when the request is answered."""

    isr_size: int
    high_watermark: int
    leader_epoch: int


NOWHERE = Standing(0, NO_OFFSET, NO_EPOCH)


def standing(partition: Partition) -> Standing:
    """Return a partition's present state."""
    return Standing(len(partition.isr), partition.high_watermark, partition.leader_epoch)


@dataclass(slots=True, eq=False)
class PendingAppend:
    """Records in a leader's log that the in-sync replicas must have before the producer is answered."""

    partition: Partition
    required_offset: int
    """The high watermark must reach this."""
    min_insync_replicas: int
    error: ErrorCode = ErrorCode.REQUEST_TIMED_OUT
    """Its result; after a time-out the records may still be committed."""
    decided: Standing | None = None

    def settle(self) -> bool:
        """Return whether the records are committed, or the lead was lost before that."""
        if self.partition.offline:
            self.error = ErrorCode.KAFKA_STORAGE_ERROR
        elif not self.partition.is_leader and self.partition.rules.lost_leads_end_waits:
            self.error = ErrorCode.NOT_LEADER_FOR_PARTITION
        elif self.partition.high_watermark < self.required_offset:
            return False
        elif self.partition.has_enough_insync(self.min_insync_replicas):
            self.error = ErrorCode.NONE
        else:
            self.error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        self.decided = standing(self.partition)
        return True


@dataclass(slots=True, eq=False)
class DelayedProduce:
    """A waiting produce request; the result of a partition is fixed when it ends."""

    waiting: list[PendingAppend]

    def try_complete(self, _changed: TopicPartition) -> bool:
        """Whether no partition is left to wait for."""
        self.waiting = [each for each in self.waiting if not each.settle()]
        return not self.waiting


@dataclass(slots=True, eq=False)
class _Outcome:
    key: TopicPartition
    error: ErrorCode
    partition: Partition | None = None
    info: AppendInfo | None = None
    pending: PendingAppend | None = None
    log_start_offset: int = NO_OFFSET
    """Of the log that refused the records."""

    def result(self) -> AppendResult:
        """Return the producer's answer; offsets only with success."""
        error = self.pending.error if self.pending is not None else self.error
        if error is not ErrorCode.NONE or self.info is None or self.partition is None:
            return AppendResult(error=error, log_start_offset=self.log_start_offset)
        return AppendResult(
            error=error,
            base_offset=self.info.base_offset,
            last_offset=self.info.last_offset,
            log_start_offset=self.partition.log.log_start_offset,
            log_append_time=self.info.append_time_ms,
        )

    def standing(self) -> Standing:
        """Return the partition's state when this was decided."""
        if self.pending is not None and self.pending.decided is not None:
            return self.pending.decided
        return NOWHERE if self.partition is None else standing(self.partition)


@dataclass(slots=True, kw_only=True)
class Appender:
    """Carries out produce requests."""

    replicas: Replicas
    rules: ProtocolRules
    state_log: StateLog
    min_insync_replicas: Callable[[str], int]
    """A topic's requirement for acks=all."""
    wall_ms: Callable[[], int]
    """For timestamps of records only."""

    async def append(self, items: Sequence[ToAppend], params: ProduceParams) -> list[AppendResult]:
        """Return the result of each partition, in order, once all have ended."""
        began_s = now_s()
        outcomes = [self._append(item, params) for item in items]
        waiting = [outcome.pending for outcome in outcomes if outcome.pending and not outcome.pending.settle()]
        if waiting:
            keys = [pending.partition.key for pending in waiting]
            await self.replicas.appends.wait(DelayedProduce(waiting), keys, params.timeout_s)
        results = []
        for outcome in outcomes:
            results.append(outcome.result())
            self._log_response(outcome, results[-1], params, now_s() - began_s)
        return results

    def _append(self, item: ToAppend, params: ProduceParams) -> _Outcome:
        topic, number = item.key
        if not params.internal and (error := self._refusal(item, params)) is not ErrorCode.NONE:
            return _Outcome(item.key, error)
        partition = None
        min_insync_replicas = self.min_insync_replicas(topic)
        try:
            partition = self.replicas.led(topic, number)
            info = partition.append_as_leader(
                item.records,
                acks=params.acks,
                min_insync_replicas=min_insync_replicas,
                now_ms=self.wall_ms(),
                internal=params.internal,
                verification=item.verification,
            )
        except PartitionError as error:
            return _Outcome(item.key, error.error, partition)
        except InvalidRecords as error:
            log.info("append.refused partition=%s-%d error=%s why=%s", topic, number, error.error_code.name, error)
            start = NO_OFFSET
            if partition is not None and error.error_code not in WITHOUT_LOG_START:
                start = partition.log.log_start_offset
            return _Outcome(item.key, error.error_code, partition, log_start_offset=start)
        except OSError as error:
            log.error("append.failed partition=%s-%d error=%s", topic, number, error)
            return _Outcome(item.key, ErrorCode.KAFKA_STORAGE_ERROR, partition)
        counters = self.replicas.counters
        for batch in info.batches:
            counters.messages_in += batch.records_count
            counters.bytes_in += batch.size
        self.replicas.appended(partition)
        outcome = _Outcome(item.key, ErrorCode.NONE, partition, info)
        if params.acks == ACKS_ALL and self.rules.acks_all_waits_for_isr:
            outcome.pending = PendingAppend(partition, info.last_offset + 1, min_insync_replicas)
        return outcome

    def malformed(self, item: ToAppend, params: ProduceParams) -> ErrorCode:
        """Return why records are refused before a coordinator is asked about their transaction, or NONE."""
        topic, number = item.key
        if topic not in INTERNAL_TOPICS and self.replicas.is_unknown(topic, number):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _refusal_of_records(item.records, knows_zstd=params.knows_zstd)

    def _refusal(self, item: ToAppend, params: ProduceParams) -> ErrorCode:
        """Return why a client's records are not even tried, in the order of Kafka's checks, or NONE."""
        topic = item.key[0]
        if error := self.malformed(item, params):
            return error
        if params.acks not in VALID_ACKS:
            return ErrorCode.INVALID_REQUIRED_ACKS
        return ErrorCode.INVALID_TOPIC_EXCEPTION if topic in INTERNAL_TOPICS else ErrorCode.NONE

    def _log_response(self, outcome: _Outcome, result: AppendResult, params: ProduceParams, duration_s: float) -> None:
        stood = outcome.standing()
        self.state_log.emit(
            ProduceResponse(
                correlation_id=params.correlation_id,
                client=params.client,
                topic=outcome.key[0],
                partition=outcome.key[1],
                acks=params.acks,
                base_offset=result.base_offset,
                last_offset=result.last_offset,
                error=result.error,
                isr_size=stood.isr_size,
                high_watermark=stood.high_watermark,
                leader_epoch=stood.leader_epoch,
                duration_ms=round(duration_s * 1000, 3),
            )
        )


def _refusal_of_records(records: bytes, *, knows_zstd: bool) -> ErrorCode:
    """Return NONE if they are exactly one whole batch of format 2, of a codec that may be sent (`validateRecords`)."""
    try:
        size = next_batch_size(records, 0)
        if size is None or records[MAGIC_AT] != MAGIC:
            return ErrorCode.INVALID_RECORD
        header = first_header(records)
        if header is not None and not knows_zstd and header.codec not in CODECS_BEFORE_ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.NONE if next_batch_size(records, size) is None else ErrorCode.INVALID_RECORD
    except CorruptBatch:
        return ErrorCode.CORRUPT_MESSAGE
