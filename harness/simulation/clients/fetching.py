"""Reading ahead of the polls: one fetch in flight a broker, none of a partition whose records wait for a poll.

Positions are validated against the leader's epochs after every change of leader (KIP-320), so a truncation is noticed.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.broker.log.batch import iter_batches, parse_records
from harness.broker.replicas.fetcher_messages import (
    FETCH_VERSION,
    LIST_OFFSETS_VERSION,
    OFFSET_FOR_LEADER_EPOCH_VERSION,
    READ_UNCOMMITTED,
    Limits,
    PartitionRequest,
    fetch_request,
    list_offsets_request,
    offset_for_leader_epoch_request,
    without_session,
)
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import FetchRequest
from harness.broker.wire.sentinels import CONSUMER, EARLIEST
from harness.broker.wire.transport import Message, PeerError
from harness.client_rules.steps import RETRY_S
from harness.simulation.clients.metadata import ClusterClient
from harness.simulation.clients.refusals import Refused
from harness.store.history import Record
from harness.values import TopicPartition, value_id

FETCH_LIMITS = Limits(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, partition_max_bytes=1 << 20)


async def list_offset(
    client: ClusterClient, broker_id: int, key: TopicPartition, timestamp: int, isolation_level: int = READ_UNCOMMITTED
) -> int:
    """Return the earliest or latest offset of a partition; raises PeerError or Refused."""
    request = list_offsets_request(CONSUMER, PartitionRequest(key, -1, timestamp), isolation_level)
    answer = await client.ask(broker_id, request, LIST_OFFSETS_VERSION)
    partition = answer.topics[0].partitions[0]
    if partition.error_code != ErrorCode.NONE:
        raise Refused(partition.error_code)
    offset: int = partition.offset
    return offset


@dataclass(slots=True)
class _Position:
    """Where a partition is read next."""

    offset: int = 0
    last_epoch: int = -1
    """Leader epoch of the record before; -1 when none was read."""
    validated_in: int = -1
    """The leader's epoch in which the leader confirmed the position."""
    buffered: bool = False
    """Whether records wait for the next poll: until then nothing more is fetched."""


class Fetching:
    """The records of some partitions, each from a position on."""

    def __init__(self, client: ClusterClient, isolation_level: int = READ_UNCOMMITTED) -> None:
        self._client = client
        self._isolation_level = isolation_level
        self._positions: dict[TopicPartition, _Position] = {}
        self._buffer: deque[Record] = deque()
        self._wake = asyncio.Event()
        self._fetchers: dict[int, asyncio.Task[None]] = {}

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Let the next records of these partitions be those from their positions on; -1 is the log's start."""
        self.unassign(positions)
        self._positions |= {key: _Position(max(0, offset)) for key, offset in positions.items()}
        self.look_again()

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Give no records of these partitions any more, not even those that have been read."""
        gone = set(partitions)
        self._positions = {key: position for key, position in self._positions.items() if key not in gone}
        self._buffer = deque(record for record in self._buffer if (record.topic, record.partition) not in gone)

    def take(self) -> tuple[Record, ...]:
        """Return what has been read since the last time."""
        records = tuple(self._buffer)
        self._buffer.clear()
        for position in self._positions.values():
            position.buffered = False
        if records:
            self._wake_all()
        return records

    def passed(self) -> dict[TopicPartition, int]:
        """Return how far each partition is read of which no records wait for the next poll."""
        return {key: position.offset for key, position in self._positions.items() if not position.buffered}

    def look_again(self) -> None:
        """The metadata or the connections have changed."""
        for broker_id in self._client.broker_ids:
            if broker_id not in self._fetchers:
                self._fetchers[broker_id] = asyncio.ensure_future(self._fetch_from(broker_id))
        self._wake_all()

    def stop(self) -> None:
        """Read nothing any more."""
        for task in self._fetchers.values():
            task.cancel()

    def _wake_all(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()

    async def _fetch_from(self, broker_id: int) -> None:
        while True:
            wake = self._wake
            led = self._client.led_by(broker_id, self._positions)
            wanted = [key for key in led if not self._positions[key].buffered]
            if not wanted:
                await wake.wait()
                continue
            try:
                valid = [key for key in wanted if await self._is_valid(broker_id, key)]
                if ready := [key for key in valid if key in self._positions]:
                    await self._fetch(broker_id, ready)
                else:
                    await asyncio.sleep(RETRY_S)
            except (PeerError, Refused):
                self._client.refresh_soon()
                await asyncio.sleep(RETRY_S)

    async def _is_valid(self, broker_id: int, key: TopicPartition) -> bool:
        """Whether a position may be read from; after a change of leader the leader's epochs decide."""
        position, leader = self._positions.get(key), self._client.leaders[key]
        if position is None:
            return False  # it was given back while others were looked at
        if position.last_epoch < 0 or position.validated_in == leader.leader_epoch:
            return True
        before = (position.offset, position.last_epoch)
        request = offset_for_leader_epoch_request(
            CONSUMER, [PartitionRequest(key, leader.leader_epoch, position.last_epoch)]
        )
        answer = await self._client.ask(broker_id, request, OFFSET_FOR_LEADER_EPOCH_VERSION)
        partition = answer.topics[0].partitions[0]
        if partition.error_code != ErrorCode.NONE:
            self._client.refresh_soon()
            return False
        if self._positions.get(key) is not position or (position.offset, position.last_epoch) != before:
            return False  # another leader's records have come meanwhile: this one's answer is not about them
        position.validated_in = leader.leader_epoch
        if partition.end_offset < position.offset:
            position.offset, position.last_epoch = max(partition.end_offset, 0), partition.leader_epoch
        return True

    async def _fetch(self, broker_id: int, keys: list[TopicPartition]) -> None:
        before = {key: (self._positions[key], self._positions[key].offset) for key in keys}
        answer = await self._client.ask(broker_id, self._fetch_request(keys), FETCH_VERSION)
        for topic in answer.responses:
            for partition in topic.partitions:
                key = (topic.topic, partition.partition_index)
                position, offset = before[key]
                if self._positions.get(key) is not position or position.offset != offset:
                    continue  # it is read from elsewhere, or another leader has answered meanwhile
                if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._reset(broker_id, key)
                elif partition.error_code != ErrorCode.NONE:
                    self._client.refresh_soon()
                    await asyncio.sleep(RETRY_S)
                elif partition.records:
                    self._take(key, bytes(partition.records), partition.aborted_transactions or ())

    def _fetch_request(self, keys: list[TopicPartition]) -> FetchRequest:
        partitions = [
            PartitionRequest(key, self._client.leaders[key].leader_epoch, self._positions[key].offset) for key in keys
        ]
        return fetch_request(CONSUMER, FETCH_LIMITS, without_session(partitions), self._isolation_level)

    async def _reset(self, broker_id: int, key: TopicPartition) -> None:
        """Read a partition from its start, as its position is none any more."""
        position = self._positions[key]
        offset = position.offset
        earliest = await list_offset(self._client, broker_id, key, EARLIEST)
        if position.offset == offset:
            position.offset, position.last_epoch = earliest, -1

    def _take(self, key: TopicPartition, data: bytes, aborted: Iterable[Message]) -> None:
        """Let the next poll return the records, without markers and without those of aborted transactions.

        `aborted`: producer and first offset of each, as the broker tells a read_committed consumer.
        """
        position = self._positions[key]
        topic, partition = key
        begun = sorted((each.first_offset, each.producer_id) for each in aborted)
        aborting: set[int] = set()
        for header, batch in iter_batches(data):
            while begun and begun[0][0] <= header.last_offset:
                aborting.add(begun.pop(0)[1])
            if header.is_control:
                aborting.discard(header.producer_id)
            is_hidden = header.is_control or (header.is_transactional and header.producer_id in aborting)
            for record in () if is_hidden else parse_records(batch):
                if record.offset >= position.offset:
                    value, epoch = value_id(record.value, record.headers), header.leader_epoch
                    self._buffer.append(
                        Record(topic=topic, partition=partition, offset=record.offset, value=value, leader_epoch=epoch)
                    )
                    position.buffered = True
            position.offset = max(position.offset, header.last_offset + 1)
            position.last_epoch = header.leader_epoch
