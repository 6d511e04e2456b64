"""Serving fetches: consumers read committed records, followers all records, and their offsets show what they have.

A follower learns of a new high watermark with the next records or, at the latest, at the end of its long poll: sending
it at once would double the number of fetches (KAFKA-9731).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.broker.log.batch import next_batch_size, parse_header
from harness.broker.log.compression import CODEC_NAMES, ZSTD
from harness.broker.log.epoch_cache import UNDEFINED_END, EpochEnd
from harness.broker.log.log import OffsetOutOfRange
from harness.broker.log.transaction_index import AbortedTransaction
from harness.broker.replicas.isr import IsrKeeper
from harness.broker.replicas.partition import Partition, PartitionError
from harness.broker.replicas.replicas import Replicas, now_s
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.limits import Room, unlimited
from harness.broker.wire.sentinels import CONSUMER, NO_EPOCH
from harness.events import NO_OFFSET, FetchResponse
from harness.values import TopicPartition, value_class

DEBUGGING = -2
"""As replica id: a tool, which may ask any replica (`DEBUGGING_CONSUMER_ID`)."""


class PartitionFetch(NamedTuple):
    """One partition in a fetch request."""

    key: TopicPartition
    current_leader_epoch: int
    fetch_offset: int
    max_bytes: int
    log_start_offset: int = NO_OFFSET
    """Of the follower that asks."""
    last_fetched_epoch: int = NO_EPOCH
    """Of the record before `fetch_offset`, if the request asks where the logs diverge (KIP-595, from Fetch v12)."""


class Read(NamedTuple):
    """One partition in a fetch response."""

    fetch: PartitionFetch
    error: ErrorCode
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: bytes = b""
    diverging: EpochEnd | None = None
    """End of the last epoch that both have, if the request's log differs after it."""
    last_stable_offset: int = NO_OFFSET
    aborted: Sequence[AbortedTransaction] | None = None
    """The aborted transactions among the records; None unless reading committed."""


@value_class(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of an answer: when it is sent, and its size."""

    min_bytes: int
    max_bytes: int
    max_wait_s: float
    room: Room = unlimited
    """Room of the answer, computed when it is made."""
    only_from_leader: bool = True
    """Whether a consumer's version reads only from leaders (KIP-392: followers too, from Fetch v11 on)."""
    knows_zstd: bool = True
    """Whether the request's sender can read zstd (KIP-110, from Fetch v10 on)."""
    read_committed: bool = False
    """Whether a consumer reads decided transactions only, with a list of aborted ones (KIP-98)."""


@dataclass(slots=True, eq=False)
class DelayedFetch:
    """One fetch: by a consumer up to the high watermark or last stable offset, by a follower up to the log's end."""

    replicas: Replicas
    replica_id: int
    partitions: Sequence[PartitionFetch]
    limits: FetchLimits
    rules: ProtocolRules
    is_follower: bool = field(init=False)
    """Whether a broker asks."""

    def __post_init__(self) -> None:
        self.is_follower = self.replica_id > CONSUMER

    def partition(self, fetch: PartitionFetch) -> Partition:
        """Return the partition to read from.

        Raises:
            PartitionError: it is not led here in that epoch (nor followed, if the sender may read from a follower), the
                sender is no replica of it, or cannot read what its topic is compressed with.
        """
        partition = self._served(fetch)
        if partition.log.settings.compression == CODEC_NAMES[ZSTD] and not self.limits.knows_zstd:
            raise PartitionError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "the sender's version of Fetch has no zstd")
        return partition

    def _served(self, fetch: PartitionFetch) -> Partition:
        if not self.is_follower and not self.limits.only_from_leader:
            return self.replicas.followed_or_led(*fetch.key, fetch.current_leader_epoch)
        partition = self.replicas.led(*fetch.key, fetch.current_leader_epoch)
        if self.is_follower and self.replica_id not in partition.followers:
            raise PartitionError(ErrorCode.NOT_LEADER_FOR_PARTITION, f"broker {self.replica_id} is no replica")
        return partition

    def read(self) -> list[Read]:
        """Return the available records; the first ones are returned in any size (KIP-74)."""
        reads, is_first = [], True
        left = min(self.limits.max_bytes, max(self.limits.room(), 0))
        for fetch in self.partitions:
            read = self._read(fetch, min(left, fetch.max_bytes), at_least_one=is_first)
            if read.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # Kafka answers it before it reads
                left = max(left - len(read.records), 0)
            is_first &= not read.records
            reads.append(read)
        return reads

    def is_enough(self, reads: Sequence[Read]) -> bool:
        """Whether to answer now: there are records, or an error."""
        size = 0
        for read in reads:
            if read.error is not ErrorCode.NONE or read.diverging is not None:
                return True
            size += len(read.records)
        return not reads or size >= self.limits.min_bytes

    def try_complete(self, changed: TopicPartition) -> bool:
        """Whether a change of one partition completes the fetch; usually that partition alone decides."""
        if self.limits.min_bytes > 1:
            return self.is_enough(self.read())
        return any(self._is_ready(fetch) for fetch in self.partitions if fetch.key == changed)

    def _read(self, fetch: PartitionFetch, max_bytes: int, *, at_least_one: bool) -> Read:
        try:
            partition = self.partition(fetch)
            diverging = None if fetch.last_fetched_epoch == NO_EPOCH else _diverging(partition, fetch)
            records = b""
            aborted: list[AbortedTransaction] | None = [] if self._reads_committed and diverging is None else None
            if diverging is None:
                records = partition.log.read(
                    fetch.fetch_offset, max_bytes=max_bytes, up_to=self._end(partition), at_least_one=at_least_one
                )
                if max_bytes < 0 and fetch.fetch_offset < self._end(partition):
                    return Read(fetch, ErrorCode.UNKNOWN_SERVER_ERROR)  # `LogSegment.read` refuses it
            if aborted is not None and records and self.rules.aborted_transactions_are_told:
                aborted = partition.log.aborted_transactions(fetch.fetch_offset, last_offset(records) + 1)
            elif not (records or at_least_one) and max_bytes > 0 and fetch.fetch_offset < self._end(partition):
                aborted = None  # Kafka has read a part of a batch, and drops all of it (`readFromLog`)
        except PartitionError as error:
            return Read(fetch, error.error)
        except OffsetOutOfRange:
            return Read(fetch, ErrorCode.OFFSET_OUT_OF_RANGE)
        except OSError:  # the directory has recorded it (`ReplicaManager.readFromLog`)
            return Read(fetch, ErrorCode.KAFKA_STORAGE_ERROR)
        return Read(
            fetch,
            ErrorCode.NONE,
            partition.high_watermark,
            partition.log.log_start_offset,
            records,
            diverging,
            partition.last_stable_offset,
            aborted,
        )

    def _is_ready(self, fetch: PartitionFetch) -> bool:
        try:
            partition = self.partition(fetch)
        except PartitionError:
            return True
        return fetch.fetch_offset < self._end(partition)

    def _end(self, partition: Partition) -> int:
        if self.is_follower or not self.rules.consumers_read_what_is_committed:
            return partition.log.log_end_offset
        if self._reads_committed and self.rules.read_committed_stops_at_open_transactions:
            return partition.last_stable_offset
        return partition.high_watermark

    @property
    def _reads_committed(self) -> bool:
        return self.limits.read_committed and not self.is_follower


@dataclass(slots=True, kw_only=True)
class FetchServer:
    """Carries out fetches."""

    replicas: Replicas
    isr: IsrKeeper
    state_log: StateLog
    rules: ProtocolRules

    async def fetch(self, replica_id: int, partitions: Sequence[PartitionFetch], limits: FetchLimits) -> list[Read]:
        """Return the result of each partition, in order; waits when there is none yet."""
        delayed = DelayedFetch(self.replicas, replica_id, partitions, limits, self.rules)
        if delayed.is_follower:
            self._note_progress(delayed)
        reads = delayed.read()
        if not delayed.is_enough(reads):
            keys = [each.key for each in partitions]
            await self.replicas.fetches.wait(delayed, keys, limits.max_wait_s)
            reads = delayed.read()
        sent = sum(len(read.records) for read in reads)
        if delayed.is_follower:  # followers log their own appends
            self.replicas.counters.replication_bytes_out += sent
        else:
            self.replicas.counters.bytes_out += sent
            for read in reads:
                self._log_sent(read)
        return reads

    def _note_progress(self, delayed: DelayedFetch) -> None:
        """A follower has everything before its fetch offset: it may join the ISR, and records may be committed."""
        for fetch in delayed.partitions:
            try:
                partition = delayed.partition(fetch)
            except PartitionError:
                continue  # answered when it is read
            if not partition.log.log_start_offset <= fetch.fetch_offset <= partition.log.log_end_offset:
                continue
            moved = partition.follower_fetched(delayed.replica_id, fetch.fetch_offset, now_s())
            if partition.follower_starts_at(delayed.replica_id, fetch.log_start_offset):
                self.replicas.deletions.check(fetch.key)
            self.isr.consider_joining(partition, delayed.replica_id)
            if moved:
                self.replicas.advance(partition, cause="fetch")

    def _log_sent(self, read: Read) -> None:
        """Log records sent to a consumer."""
        partition = self.replicas.get(*read.fetch.key) if read.records else None
        if partition is None:
            return
        self.state_log.emit(
            FetchResponse(
                topic=read.fetch.key[0],
                partition=read.fetch.key[1],
                replica=CONSUMER,
                fetch_offset=read.fetch.fetch_offset,
                current_leader_epoch=read.fetch.current_leader_epoch,
                high_watermark=read.high_watermark,
                last_offset=last_offset(read.records),
                leader_epoch=partition.leader_epoch,
            )
        )


def _diverging(partition: Partition, fetch: PartitionFetch) -> EpochEnd | None:
    """Return the end of an epoch here, if the sender has read past it; raises OffsetOutOfRange."""
    end = partition.end_of_epoch(fetch.last_fetched_epoch)
    if end == UNDEFINED_END:
        raise OffsetOutOfRange(f"nothing is known of leader epoch {fetch.last_fetched_epoch}")
    parted = end.epoch < fetch.last_fetched_epoch or end.end_offset < fetch.fetch_offset
    return end if parted else None


def last_offset(records: bytes) -> int:
    """Return the last offset in whole batches."""
    last = position = 0
    while (size := next_batch_size(records, position)) is not None:
        last = position
        position += size
    return parse_header(records, last).last_offset
