"""Delivers transaction markers: to the leader of each partition of a transaction, until all of them have theirs.

After Kafka's `TransactionMarkerChannelManager`: markers for one broker go out together, what fails for now is sent
again to the leader of that time, partitions of deleted topics are dropped, and a coordinator that is deposed stops.
What waits is bounded: a transactional id has one transaction at a time, a request at most `MARKERS_A_REQUEST` markers.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.broker.background import begin, reported
from harness.broker.metadata_cache import MetadataCache
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.transactions.metadata import TransactionMetadata
from harness.broker.transactions.peers import Peers
from harness.broker.transactions.records import by_topic
from harness.broker.transactions.transaction import Transaction
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from harness.broker.wire.transport import PeerError
from harness.events import NO_LEADER, TransactionMarkerResponse, TransactionMarkerSend
from harness.values import TopicPartition, value_class

_log = logging.getLogger(__name__)

WRITE_MARKERS_VERSION = 1
RETRY_WAIT_S = 0.05
MARKERS_A_REQUEST = 500

_WRITTEN = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION)
_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Another producer or coordinator has gone on: this transaction is not this coordinator's to end any more."""

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Topic = _Marker.WritableTxnMarkerTopic


@value_class(frozen=True, slots=True, kw_only=True)
class Completion:
    """A transaction whose outcome is decided and stored."""

    transaction: Transaction
    state_partition: int
    """The partition of `__transaction_state` that holds it."""
    coordinator_epoch: int
    commits: bool
    target: TransactionMetadata
    """What is to be stored when every marker is written."""


class _Waiting(NamedTuple):
    """Markers of one transaction for one broker."""

    completion: Completion
    partitions: frozenset[TopicPartition]


@dataclass(slots=True, kw_only=True)
class MarkerDelivery:
    """Everything that waits for markers."""

    peers: Peers
    metadata: MetadataCache
    state_log: StateLog
    deleted: Callable[[TopicPartition], Awaitable[bool]]
    """Whether a partition that the metadata cache does not have is deleted."""
    rules: ProtocolRules = RIGHT
    store: Callable[[Completion], Awaitable[ErrorCode]] = field(init=False)
    """Stores that a transaction is complete; COORDINATOR_NOT_AVAILABLE is tried again."""
    retried_stores: int = 0
    """How many of these wait to be tried again (Kafka's `LogAppendRetryQueueSize`)."""
    _pending: dict[str, Completion] = field(default_factory=dict)
    _completing: set[str] = field(default_factory=set)
    """Transactional ids that are being stored as complete."""
    fenced: set[str] = field(default_factory=set)
    """Transactional ids that another producer or coordinator has gone on with."""
    _queues: dict[int, deque[_Waiting]] = field(default_factory=dict)
    _unknown: deque[_Waiting] = field(default_factory=deque)
    _senders: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _looking: asyncio.Task[None] | None = None

    @property
    def without_destination(self) -> int:
        """How many markers wait for a leader that is alive (Kafka's `UnknownDestinationQueueSize`)."""
        return len(self._unknown)

    @property
    def underway(self) -> set[str]:
        """The transactional ids that wait for markers, are being stored, or are not this coordinator's to end."""
        return {*self._pending, *self._completing, *self.fenced}

    def deliver(self, completion: Completion) -> None:
        """Have every partition of a transaction marked, then the transaction stored as complete."""
        self._pending[completion.transaction.transactional_id] = completion
        self.fenced.discard(completion.transaction.transactional_id)
        self._route(completion, completion.transaction.metadata.partitions)
        self._complete_if_marked(completion)

    def deliver_unstored(self, completion: Completion) -> None:
        """Send markers of a decision that is not stored, which only a planted bug does; `target` is the decision."""
        self._route(completion, completion.transaction.metadata.partitions)

    def cancel(self, state_partition: int) -> None:
        """Send no markers any more for the transactions of a partition of `__transaction_state`."""
        self._pending = {name: each for name, each in self._pending.items() if each.state_partition != state_partition}

    async def stop(self) -> None:
        """End whatever is under way."""
        tasks = [*self._senders.values(), *self._tasks, *([self._looking] if self._looking else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.peers.close()

    # --- where markers go ---

    def _route(self, completion: Completion, partitions: Iterable[TopicPartition]) -> None:
        """Queue markers for the leaders of these partitions, as the metadata cache has them now.

        For Kafka a partition that the cache does not have is deleted. But the cache of a broker that has just started
        is filled after LeaderAndIsr, with which the load of transactions begins, and in parts: partitions whose
        replicas are all down come with a later request. So they wait here until ZooKeeper tells.
        """
        by_leader: dict[int | None, set[TopicPartition]] = {}
        for each in sorted(partitions):
            info = self.metadata.partition(*each)
            if info is None and not self.rules.markers_wait_for_metadata:
                self._drop(completion, [each])
                continue
            leader = info.leader if info else NO_LEADER
            is_alive = self.metadata.leader_endpoint(leader, self.peers.listener) is not None
            by_leader.setdefault(leader if is_alive else None, set()).add(each)
        for to, led in by_leader.items():
            waiting = _Waiting(completion, frozenset(led))
            if to is None:
                self._unknown.append(waiting)
                self._look_for_leaders()
            else:
                self._queues.setdefault(to, deque()).append(waiting)
                self._send_to(to)

    def _drop(self, completion: Completion, partitions: Collection[TopicPartition]) -> None:
        """Send no markers to partitions that are deleted, and what they held with them."""
        for each in partitions:
            _log.info("markers.dropped transactional_id=%s partition=%s-%d", _name(completion), *each)
        self._note_marked(completion, partitions)

    def _look_for_leaders(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._find_leaders(), name="find-marker-leaders")
            self._looking.add_done_callback(reported)

    async def _find_leaders(self) -> None:
        while self._unknown:
            await asyncio.sleep(RETRY_WAIT_S)
            unknown = {each for _, partitions in self._unknown for each in partitions}
            missing = sorted(each for each in unknown if self.metadata.partition(*each) is None)
            deleted = frozenset([each for each in missing if await self.deleted(each)])
            waiting, self._unknown = self._unknown, deque()
            for completion, partitions in waiting:
                if self._is_pending(completion):
                    self._drop(completion, sorted(partitions & deleted))
                    self._route(completion, partitions - deleted)
                    self._complete_if_marked(completion)

    # --- sending ---

    def _send_to(self, broker_id: int) -> None:
        sender = self._senders.get(broker_id)
        if sender is None or sender.done():
            work = self._send_queue(broker_id)
            self._senders[broker_id] = asyncio.get_running_loop().create_task(work, name=f"markers-to-{broker_id}")
            self._senders[broker_id].add_done_callback(reported)

    async def _send_queue(self, broker_id: int) -> None:
        """Send what waits for a broker, until nothing does."""
        queue = self._queues[broker_id]
        while queue:
            batch = [queue.popleft() for _ in range(min(len(queue), MARKERS_A_REQUEST))]
            batch = [each for each in batch if self._is_wanted(each.completion)]
            if not batch:
                continue
            request = WriteTxnMarkersRequest(markers=[self._marker(broker_id, each) for each in batch])
            try:
                answer = await self.peers.request(broker_id, request, WRITE_MARKERS_VERSION)
            except PeerError as error:
                _log.info("markers.retry broker=%d markers=%d error=%s", broker_id, len(batch), error)
                failed = batch
            else:
                failed = self._answered(broker_id, batch, answer)
            if failed:
                await asyncio.sleep(RETRY_WAIT_S)
            for completion, partitions in failed:
                if self._is_pending(completion):
                    self._route(completion, partitions)
                    self._complete_if_marked(completion)

    def _marker(self, broker_id: int, waiting: _Waiting) -> _Marker:
        completion, partitions = waiting
        known = completion.transaction.metadata
        self.state_log.emit(
            TransactionMarkerSend(
                transactional_id=_name(completion),
                state_partition=completion.state_partition,
                coordinator_epoch=completion.coordinator_epoch,
                producer_id=known.producer_id,
                producer_epoch=known.producer_epoch,
                to=broker_id,
                commits=completion.commits,
                partitions=[f"{topic}-{number}" for topic, number in sorted(partitions)],
            )
        )
        return _Marker(
            producer_id=known.producer_id,
            producer_epoch=known.producer_epoch,
            transaction_result=completion.commits,
            topics=[_Topic(name=topic, partition_indexes=numbers) for topic, numbers in by_topic(partitions).items()],
            coordinator_epoch=completion.coordinator_epoch,
        )

    def _answered(self, broker_id: int, batch: Collection[_Waiting], answer: WriteTxnMarkersResponse) -> list[_Waiting]:
        """Note what is marked, and return what is to be sent again."""
        errors = {
            (marker.producer_id, topic.name, each.partition_index): ErrorCode(each.error_code)
            for marker in answer.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        failed = []
        for completion, partitions in batch:
            producer_id = completion.transaction.metadata.producer_id
            results = {each: errors.get((producer_id, *each), ErrorCode.UNKNOWN_SERVER_ERROR) for each in partitions}
            self._log_answer(broker_id, completion, results)
            if not self._is_pending(completion):
                continue
            self._note_marked(completion, [each for each, error in results.items() if error in _WRITTEN])
            if any(error in _FENCED for error in results.values()):
                _log.info("markers.fenced transactional_id=%s errors=%s", _name(completion), results)
                del self._pending[_name(completion)]
                self.fenced.add(_name(completion))
                continue
            remaining = frozenset(each for each, error in results.items() if error not in _WRITTEN)
            if remaining:
                failed.append(_Waiting(completion, remaining))
            self._complete_if_marked(completion)
        return failed

    def _log_answer(self, broker_id: int, completion: Completion, results: dict[TopicPartition, ErrorCode]) -> None:
        known = completion.transaction.metadata
        ordered = sorted(results.items())
        self.state_log.emit(
            TransactionMarkerResponse(
                transactional_id=_name(completion),
                state_partition=completion.state_partition,
                coordinator_epoch=completion.coordinator_epoch,
                producer_id=known.producer_id,
                producer_epoch=known.producer_epoch,
                sender=broker_id,
                commits=completion.commits,
                partitions=[f"{topic}-{number}" for (topic, number), _ in ordered],
                errors=[int(error) for _, error in ordered],
            )
        )

    # --- completion ---

    def _is_pending(self, completion: Completion) -> bool:
        return self._pending.get(_name(completion)) is completion

    def _is_wanted(self, completion: Completion) -> bool:
        """Whether markers are to be sent: not when this coordinator was deposed meanwhile."""
        return completion.target.state.is_prepared or self._is_pending(completion)

    def _note_marked(self, completion: Completion, partitions: Collection[TopicPartition]) -> None:
        if partitions and self._is_pending(completion):
            completion.transaction.marked(partitions)

    def _complete_if_marked(self, completion: Completion) -> None:
        """Store that a transaction is complete, when no partition lacks its marker."""
        unmarked = completion.transaction.metadata.partitions
        if not self._is_pending(completion) or (unmarked and self.rules.completion_waits_for_every_marker):
            return
        del self._pending[_name(completion)]
        self._completing.add(_name(completion))
        begin(self._tasks, self._complete(completion), "complete-transaction")

    async def _complete(self, completion: Completion) -> None:
        try:
            while await self.store(completion) is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self.retried_stores += 1
                try:
                    await asyncio.sleep(RETRY_WAIT_S)
                finally:
                    self.retried_stores -= 1
        finally:
            self._completing.discard(_name(completion))


def _name(completion: Completion) -> str:
    return completion.transaction.transactional_id
