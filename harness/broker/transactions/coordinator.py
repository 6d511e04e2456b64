"""The transaction coordinator: loads the transactions whose part of `__transaction_state` this broker leads.

A request is answered once what it changes is stored with acks=all, so whatever a producer was told survives the
coordinator (`TransactionCoordinator` and `TransactionStateManager` in Kafka).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.background import begin, every
from harness.broker.coordinator.loading import read_to_end
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.shards import Shard, Shards
from harness.broker.coordinator.statistics import LoadTimes
from harness.broker.coordinator.topic import NO_CORRELATION_ID, TRANSACTION_ERRORS, CoordinatorLog, CoordinatorTopic
from harness.broker.replicas.control_requests import Leadership
from harness.broker.replicas.replicas import now_s
from harness.broker.state_log import StateLog
from harness.broker.transactions.markers import Completion, MarkerDelivery
from harness.broker.transactions.metadata import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    TransactionState,
)
from harness.broker.transactions.records import encode_key, encode_tombstones, encode_transaction
from harness.broker.transactions.replay import TransactionReplay
from harness.broker.transactions.transaction import Need, Producer, Transaction
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.znodes import MalformedZnode
from harness.events import TransactionLoad, TransactionResponse, TransactionStateChange, TransactionUnload
from harness.values import TRANSACTIONS_TOPIC, TopicPartition

_log = logging.getLogger(__name__)

NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
_RECORD_OVERHEAD_BYTES = 100
"""Of a tombstone, with its share of the batch; more than enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """The properties that all transactions share, by default Kafka's."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    max_batch_bytes: int = 1_048_588


@dataclass(slots=True, kw_only=True)
class TransactionCoordinator:
    """The transaction coordinator of this broker."""

    shards: Shards[Transaction]
    topic: CoordinatorTopic
    producer_ids: ProducerIds
    markers: MarkerDelivery
    state_log: StateLog
    wall_ms: Callable[[], int]
    limits: TransactionLimits = field(default_factory=TransactionLimits)
    load_times: LoadTimes = field(default_factory=LoadTimes)
    storing: Counter[str] = field(default_factory=Counter)
    """Transactional ids, the next state of which is being stored."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.markers.store = self.store_completion

    # --- the coordinator's life ---

    def start(self, *, abort_every_s: float, expire_every_s: float) -> None:
        """Abort what has timed out and forget what has expired, again and again."""
        begin(self._tasks, every(abort_every_s, self.abort_timed_out, name="abort-transactions"), "abort-transactions")
        begin(self._tasks, every(expire_every_s, self.expire, name="expire-transactional-ids"), "expire-ids")

    def leadership_changed(self, gained: list[Leadership], lost: list[Leadership]) -> None:
        """Start to load what this broker leads now of `__transaction_state`, and forget what it no longer leads."""
        for topic, partition, leader_epoch in lost:
            if topic == TRANSACTIONS_TOPIC:
                count = len(self.shards.of(partition).entries)
                if self.shards.unload(partition, leader_epoch):
                    self.markers.cancel(partition)
                    self.state_log.emit(
                        TransactionUnload(partition=partition, leader_epoch=leader_epoch, transactions=count)
                    )
        for topic, partition, leader_epoch in gained:
            if topic == TRANSACTIONS_TOPIC and self.shards.begin_load(partition, leader_epoch):
                self.markers.cancel(partition)
                begin(self._tasks, self._load(partition, leader_epoch), "load-transactions")

    async def stop(self) -> None:
        """End whatever is under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.markers.stop()

    # --- requests ---

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> tuple[ErrorCode, Producer]:
        """Answer InitProducerId: the producer's id and epoch of its next session."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, NO_PRODUCER
        if not 0 < timeout_ms <= self.limits.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT, NO_PRODUCER
        error, producer = await self._init(transactional_id, timeout_ms, expected)
        self._log_response("InitProducerId", transactional_id, producer, error)
        return error, producer

    async def add_partitions(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition], *, api: str
    ) -> ErrorCode:
        """Answer AddPartitionsToTxn, and AddOffsetsToTxn for the partition that holds the group's offsets."""
        error, transaction = self._known(transactional_id)
        if transaction is not None:
            epoch = self._epoch(transactional_id)
            decision = transaction.add_partitions(producer, partitions, self.wall_ms())
            error = await self._carried_out(transaction, decision, epoch)
        self._log_response(api, transactional_id, producer, error)
        return error

    def verify(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Answer the AddPartitionsToTxn of a broker, that only asks whether partitions are part of a transaction."""
        error, transaction = self._known(transactional_id)
        if transaction is None:
            return dict.fromkeys(partitions, error)
        return transaction.verify(producer, partitions)

    async def end(self, transactional_id: str, producer: Producer, *, commit: bool) -> ErrorCode:
        """Answer EndTxn: once the decision is stored, before the markers are written."""
        error, transaction = self._known(transactional_id)
        if transaction is not None:
            error = await self._end(transaction, producer, commit=commit)
        self._log_response("EndTxn", transactional_id, producer, error)
        return error

    def describe(self, transactional_id: str) -> tuple[ErrorCode, TransactionMetadata | None]:
        """Answer DescribeTransactions for one transactional id."""
        error, transaction = self._known(transactional_id)
        if error is ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return error, None if transaction is None else transaction.metadata

    def transactions(self) -> list[Transaction]:
        """Return all transactions of the partitions that this broker may answer for, by transactional id."""
        return [each for _, shard in self.shards.owned() for _, each in sorted(shard.entries.items())]

    # --- time ---

    async def abort_timed_out(self) -> None:
        """Abort every transaction that has been open for longer than its producer allows (KIP-588)."""
        for transaction in self.transactions():
            if transaction.has_timed_out(self.wall_ms()) and self._is_current(transaction):
                _log.info("transaction.timed_out transactional_id=%s", transaction.transactional_id)
                begin(self._tasks, self._abort(transaction), "abort-transaction")

    async def expire(self) -> None:
        """Forget transactional ids that nothing has used for long (`transactional.id.expiration.ms`)."""
        for partition, shard in self.shards.owned():
            now_ms, after_ms = self.wall_ms(), self.limits.id_expiration_ms
            expired = [each for each in shard.entries.values() if each.expire(now_ms, after_ms=after_ms) is not None]
            with self._storing(expired):
                for batch in _batches(expired, self.limits.max_batch_bytes):
                    await self._bury(partition, shard, batch)

    async def _bury(self, partition: int, shard: Shard[Transaction], batch: list[Transaction]) -> None:
        names = [each.transactional_id for each in batch]
        tombstones = encode_tombstones(names, self.wall_ms())
        result = await self.topic.append(partition, tombstones, client="", correlation_id=NO_CORRELATION_ID)
        for each in batch:
            if result.error is ErrorCode.NONE and self._is_current(each):
                self._log_state(each, each.metadata.state, TransactionState.DEAD, result.base_offset)
                del shard.entries[each.transactional_id]
            else:
                each.not_stored(fenced=False)

    # --- what requests come to ---

    async def _init(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> tuple[ErrorCode, Producer]:
        new_id: int | None = None
        while True:
            error = self.shards.coordinator_error(transactional_id)
            if error:
                return error, NO_PRODUCER
            transaction = self.shards.holding(transactional_id).entries.get(transactional_id)
            epoch = self._epoch(transactional_id)
            if transaction is None and new_id is not None:
                transaction = self._create(transactional_id, new_id, timeout_ms)
            if transaction is not None:
                decision = transaction.init_producer_id(timeout_ms, expected, self.wall_ms(), new_id)
                if not isinstance(decision, Need):
                    break
            try:
                new_id = await self.producer_ids.next_id()
            except (ZooKeeperError, MalformedZnode) as failure:
                _log.warning("init_producer_id.failed transactional_id=%s error=%r", transactional_id, failure)
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER
        if isinstance(decision, ErrorCode):
            return decision, NO_PRODUCER
        producer = Producer(decision.producer_id, decision.producer_epoch)
        if decision.state is TransactionState.PREPARE_EPOCH_FENCE:
            error = await self._end(transaction, producer, commit=False, from_client=False)
            return error or ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER
        error = await self._store(transaction, decision, epoch)
        return error, NO_PRODUCER if error else producer

    def _create(self, transactional_id: str, producer_id: int, timeout_ms: int) -> Transaction:
        metadata = TransactionMetadata(producer_id=producer_id, timeout_ms=timeout_ms, updated_ms=self.wall_ms())
        transaction = Transaction(transactional_id, metadata, self.shards.rules)
        encode_key(transactional_id)  # one that is too long for a key fails here, and leaves nothing behind
        self.shards.holding(transactional_id).entries[transactional_id] = transaction
        return transaction

    async def _end(
        self, transaction: Transaction, producer: Producer, *, commit: bool, from_client: bool = True
    ) -> ErrorCode:
        """Store how a transaction ends; then its markers are on their way."""
        epoch = self._epoch(transaction.transactional_id)
        fences = transaction.pending is TransactionState.PREPARE_EPOCH_FENCE
        decision = transaction.end(producer, commit=commit, from_client=from_client, now_ms=self.wall_ms())
        if isinstance(decision, ErrorCode):
            return decision
        if not self.shards.rules.markers_follow_the_decision:
            self.markers.deliver_unstored(self._completion(transaction, decision, epoch))
        error = await self._store(transaction, decision, epoch, fenced=fences)
        if error:
            return error
        target = transaction.complete(self.wall_ms())
        self.markers.deliver(self._completion(transaction, target, epoch))
        return ErrorCode.NONE

    async def _abort(self, transaction: Transaction) -> None:
        if transaction.has_timed_out(self.wall_ms()):  # its producer may have ended it since that was found
            fence = transaction.fence()
            raised = Producer(fence.producer_id, fence.producer_epoch)
            await self._end(transaction, raised, commit=False, from_client=False)

    def _completion(self, transaction: Transaction, target: TransactionMetadata, epoch: int) -> Completion:
        return Completion(
            transaction=transaction,
            state_partition=self._partition(transaction.transactional_id),
            coordinator_epoch=epoch,
            commits=target.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
            target=target,
        )

    async def store_completion(self, completion: Completion) -> ErrorCode:
        """Store that every marker of a transaction is written."""
        transaction, epoch = completion.transaction, completion.coordinator_epoch
        error = self._why_not_current(transaction, epoch)
        return error or await self._store(transaction, completion.target, epoch, retried=True)

    async def _carried_out(self, transaction: Transaction, decision: object, epoch: int) -> ErrorCode:
        if isinstance(decision, TransactionMetadata):
            return await self._store(transaction, decision, epoch)
        assert isinstance(decision, ErrorCode)
        return decision

    async def _store(
        self,
        transaction: Transaction,
        target: TransactionMetadata,
        epoch: int,
        *,
        fenced: bool = False,
        retried: bool = False,
    ) -> ErrorCode:
        """Store the next state of a transaction; it counts from then on, if this broker still coordinates it."""
        name = transaction.transactional_id
        with self._storing([transaction]):
            result = await self.topic.append(
                self._partition(name),
                encode_transaction(name, target, self.wall_ms()),
                client="",
                correlation_id=NO_CORRELATION_ID,
                timeout_s=target.timeout_ms / 1000,
            )
        error = TRANSACTION_ERRORS.get(result.error, result.error)
        gone = self._why_not_current(transaction, epoch)
        if error is ErrorCode.NONE and not gone:
            before = transaction.metadata.state
            transaction.stored(target)
            self._log_state(transaction, before, target.state, result.base_offset)
        elif not gone and not (retried and error is ErrorCode.COORDINATOR_NOT_AVAILABLE):
            transaction.not_stored(fenced=fenced)
        return error or gone

    @contextmanager
    def _storing(self, transactions: Collection[Transaction]) -> Iterator[None]:
        """Note that the next states of transactions are being stored."""
        names = [each.transactional_id for each in transactions]
        self.storing.update(names)
        try:
            yield
        finally:
            self.storing.subtract(names)
            self.storing += Counter()  # what is at 0 is left out

    # --- loads ---

    async def _load(self, partition: int, leader_epoch: int) -> None:
        """Read a partition's log to its end, start to answer for its ids, and go on with what was decided."""
        began_s = now_s()
        replay = TransactionReplay(partition)
        read = await read_to_end(
            f"{TRANSACTIONS_TOPIC}-{partition}",
            partial(self.topic.log, partition),
            end=lambda each: self._load_end(partition, each),
            take=replay.take,
        )
        shard = self.shards.loaded(partition, leader_epoch)
        if shard is None:
            return
        rules = self.shards.rules
        shard.entries = {name: Transaction(name, metadata, rules) for name, metadata in replay.latest.items()}
        self.load_times.add(now_s() - began_s)
        self.state_log.emit(
            TransactionLoad(
                partition=partition,
                leader_epoch=leader_epoch,
                transactions=len(replay.latest),
                log_end_offset=read.next_offset,
                disk_error=read.disk_error,
            )
        )
        for transaction in shard.entries.values():
            self._log_state(transaction, None, transaction.metadata.state, -1)
            if transaction.metadata.state.is_prepared and rules.decisions_outlive_their_coordinator:
                target = transaction.complete(self.wall_ms())
                self.markers.deliver(self._completion(transaction, target, leader_epoch))

    def _load_end(self, partition: int, log: CoordinatorLog) -> int:
        """Return up to where a log is to be read: all that this leader has, whatever it knows to be committed."""
        to_end = self.shards.rules.transactions_load_past_high_watermark
        return log.log_end_offset if to_end else self.topic.high_watermark(partition)

    # --- who answers ---

    def _known(self, transactional_id: str) -> tuple[ErrorCode, Transaction | None]:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, None
        error = self.shards.coordinator_error(transactional_id)
        if error:
            return error, None
        transaction = self.shards.holding(transactional_id).entries.get(transactional_id)
        unknown = transaction is None
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING if unknown else ErrorCode.NONE, transaction

    def _why_not_current(self, transaction: Transaction, epoch: int) -> ErrorCode:
        """Return NONE while a transaction is this broker's in that epoch."""
        name = transaction.transactional_id
        error = self.shards.coordinator_error(name)
        shard = self.shards.holding(name)
        if not error and (shard.leader_epoch != epoch or shard.entries.get(name) is not transaction):
            return ErrorCode.NOT_COORDINATOR
        return error

    def _is_current(self, transaction: Transaction) -> bool:
        return not self._why_not_current(transaction, self._epoch(transaction.transactional_id))

    def _epoch(self, transactional_id: str) -> int:
        return self.shards.holding(transactional_id).leader_epoch

    def _partition(self, transactional_id: str) -> int:
        return partition_of(transactional_id, self.shards.partitions)

    # --- what is told ---

    def _log_state(
        self, transaction: Transaction, before: TransactionState | None, after: TransactionState, log_offset: int
    ) -> None:
        known, name = transaction.metadata, transaction.transactional_id
        self.state_log.emit(
            TransactionStateChange(
                transactional_id=name,
                state_partition=self._partition(name),
                coordinator_epoch=self._epoch(name),
                producer_id=known.producer_id,
                producer_epoch=known.producer_epoch,
                from_state="" if before is None else before,
                to_state=after,
                timeout_ms=known.timeout_ms,
                partitions=[f"{topic}-{number}" for topic, number in sorted(known.partitions)],
                log_offset=log_offset,
            )
        )

    def _log_response(self, api: str, transactional_id: str, producer: Producer, error: ErrorCode) -> None:
        self.state_log.emit(
            TransactionResponse(
                transactional_id=transactional_id,
                state_partition=self._partition(transactional_id),
                coordinator_epoch=self._epoch(transactional_id),
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                api=api,
                error=error,
            )
        )


def _batches(expired: Iterable[Transaction], max_bytes: int) -> list[list[Transaction]]:
    """Return transactions in groups whose tombstones fit into one batch each."""
    batches: list[list[Transaction]] = []
    room = 0
    for each in expired:
        size = len(encode_key(each.transactional_id)) + _RECORD_OVERHEAD_BYTES
        if size > room:
            batches.append([])
            room = max_bytes
        batches[-1].append(each)
        room -= size
    return batches
