"""A transactional producer in virtual time: one id, one transaction at a time, one batch a partition under way.

A batch that was sent keeps its numbers until it is decided. When one is given up, the next epoch follows the abort, as
no broker takes a number after one that it lacks (KIP-360).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from harness.broker.log.batch import Numbering, build_batch
from harness.broker.log.markers import TRANSACTIONAL
from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import ProduceRequest
from harness.broker.wire.transport import PeerError
from harness.client_rules.outcomes import REFUSED_WHATEVER_THE_STATE
from harness.client_rules.sending import Sending
from harness.client_rules.steps import DONE, Failure, StepResult
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.metadata import ClusterClient, now_s
from harness.simulation.clients.producer import PRODUCE_VERSION, Pending
from harness.simulation.clients.transactional_requests import (
    BACK_OFF_S,
    NEW,
    TransactionalRequests,
    TransactionError,
)
from harness.store.recording import Identity
from harness.values import ACKS_ALL, TopicPartition

_NEVER_ACCEPTED = REFUSED_WHATEVER_THE_STATE | {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}
"""Errors after which a batch of a transaction is not sent again."""


class TransactionalProducer:
    """The producer of one transactional id."""

    def __init__(self, plan: ClientPlan, client: ClusterClient, transactional_id: str, sending: Sending) -> None:
        parameters = plan.parameters
        self._id = transactional_id
        self._client = client
        self._sending = sending
        self._patience_s: float = parameters["message_timeout_ms"] / 1000
        self._linger_s: float = parameters["linger_ms"] / 1000
        self._requests = TransactionalRequests(
            transactional_id,
            client,
            timeout_ms=parameters["transaction_timeout_ms"],
            patience_s=self._patience_s,
        )
        self._queues: dict[TopicPartition, deque[Pending]] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._senders: dict[TopicPartition, asyncio.Task[None]] = {}
        self._added: set[TopicPartition | str] = set()
        """Partitions, and names of groups, in the open transaction."""
        self._failed: TransactionError | None = None
        self._needs_epoch = False

    async def init(self) -> StepResult:
        """Become the present producer of the id."""
        self._requests.producer = NEW
        return await self._tried(self._new_epoch)

    def begin(self) -> None:
        """Begin a transaction."""
        self._added.clear()
        self._failed = None

    def send(self, pending: Pending) -> StepResult:
        """Take a record; it is sent when its partition is part of the transaction."""
        if self._failed is not None:
            self._sending.never_left(pending.invoked, str(self._failed))
            return self._failed.result
        key = (pending.invoked.topic, pending.invoked.partition)
        self._queues.setdefault(key, deque()).append(pending)
        if key not in self._senders or self._senders[key].done():
            self._senders[key] = asyncio.ensure_future(self._send_all(key))
        return DONE

    async def flush(self) -> StepResult:
        """Wait until every record is decided."""
        await asyncio.gather(*self._senders.values())
        return DONE if self._failed is None else self._failed.result

    async def send_offsets(self, group: str, positions: Mapping[TopicPartition, int], identity: Identity) -> StepResult:
        """Make a group's positions part of the transaction."""

        async def sent() -> None:
            if group not in self._added:
                await self._requests.add_offsets(group)
                self._added.add(group)
            await self._requests.commit_offsets(group, positions, identity)

        return await self._tried(sent)

    async def end(self, *, commit: bool) -> StepResult:
        """Commit or abort; without partitions and offsets there is nothing to end."""

        async def ended() -> None:
            if self._added:
                await self._requests.end(commit=commit)
            if self._needs_epoch:
                await self._new_epoch()

        return await self._tried(ended)

    def close(self) -> None:
        """Drop it; what is undecided stays so."""
        for task in self._senders.values():
            task.cancel()
        self._give_up_all(ErrorCode.REQUEST_TIMED_OUT)

    async def _new_epoch(self) -> None:
        await self._requests.init_producer_id()
        self._sequences.clear()
        self._needs_epoch = False

    async def _tried(self, act: Callable[[], Awaitable[None]]) -> StepResult:
        try:
            await act()
        except TransactionError as error:
            return error.result
        return DONE

    # --- records ---

    async def _send_all(self, key: TopicPartition) -> None:
        """Send what a partition has, one batch after the other."""
        queue = self._queues[key]
        try:
            while queue:
                await asyncio.sleep(self._linger_s)
                if key not in self._added:
                    await self._requests.add_partition(key)
                    self._added.add(key)
                if queue:  # another partition's failure may have given its records up meanwhile
                    await self._send_batch(key, [queue.popleft() for _ in range(len(queue))])
        except TransactionError as error:
            if self._failed is None or error.failure is Failure.FATAL:
                self._failed = error
            self._give_up_all(error.code)

    async def _send_batch(self, key: TopicPartition, batch: list[Pending]) -> None:
        """Send a batch until it is acknowledged or its time is up; raises TransactionError."""
        sequence = self._sequences.get(key, 0)
        producer = self._requests.producer
        numbering = Numbering(producer.producer_id, producer.epoch, sequence)
        records = build_batch([each.record for each in batch], attributes=TRANSACTIONAL, numbering=numbering)
        while True:
            code, offset = await self._produce(key, batch, records)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                break
            if code in _NEVER_ACCEPTED or batch[0].expires_s <= now_s():
                self._needs_epoch = True
                for pending in batch:
                    tried_once = pending.attempts == 1
                    self._sending.given_up(pending.invoked, code, described(code), tried_once=tried_once)
                raise TransactionError(code, Failure.ABORTABLE)
            self._client.refresh_soon()
            await asyncio.sleep(BACK_OFF_S)
        self._sequences[key] = sequence + len(batch)
        for delta, pending in enumerate(batch):
            self._sending.acknowledged(pending.invoked, offset + delta if offset >= 0 else -1)

    async def _produce(self, key: TopicPartition, batch: list[Pending], records: bytes) -> tuple[int, int]:
        """Send a batch once; return the error and the offset of its first record."""
        leader = self._client.leaders.get(key)
        if leader is None:
            return ErrorCode.LEADER_NOT_AVAILABLE, -1
        topic, number = key
        data = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            transactional_id=self._id,
            acks=ACKS_ALL,
            timeout_ms=int(self._client.timeout_s * 1000),
            topic_data=[
                data(name=topic, partition_data=[data.PartitionProduceData(index=number, records=records)]),
            ],
        )
        for pending in batch:
            pending.attempts += 1
        try:
            answer = await self._client.ask(leader.broker_id, request, PRODUCE_VERSION)
        except PeerError:
            return ErrorCode.NETWORK_EXCEPTION, -1
        partition = answer.responses[0].partition_responses[0]
        offset = partition.base_offset if partition.error_code == ErrorCode.NONE else -1
        return partition.error_code, offset

    def _give_up_all(self, code: int) -> None:
        """Give up what was never sent."""
        for queue in self._queues.values():
            while queue:
                self._sending.never_left(queue.popleft().invoked, described(code))
