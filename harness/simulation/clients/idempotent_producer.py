"""An idempotent producer: batches are numbered, so that a retry is written once and none overtakes another (KIP-98).

A batch that was sent keeps its records and its numbers until it is decided. When one is given up, it is unknown what is
in the log, and a broker that lacks it takes none after it: those on their way are given up too, and the partition goes
on under a fresh producer id when nothing is undecided any more. Kafka's producers raise the epoch of their id instead.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from harness.broker.log.batch import Numbering
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import InitProducerIdRequest
from harness.broker.wire.transport import PeerError
from harness.client_rules.outcomes import REFUSED_WHATEVER_THE_STATE
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.metadata import now_s
from harness.simulation.clients.producer import RETRY_S, Pending, SimulatedProducer
from harness.simulation.transport import MemoryTransport
from harness.store.recording import Recorder
from harness.values import TopicPartition

INIT_PRODUCER_ID_VERSION = 1
NO_TIMEOUT_MS = 2**31 - 1
NEVER_S = float("inf")


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """Records that were sent together, and will be again."""

    records: list[Pending]
    numbering: Numbering
    retry_s: float = NEVER_S
    """When it may be sent again; never while an answer is awaited."""


@dataclass(slots=True)
class Numbered:
    """What an idempotent producer knows of one partition."""

    producer_id: int | None = None
    epoch: int = 0
    sequence: int = 0
    """Of the next new record."""
    undecided: deque[ProducerBatch] = field(default_factory=deque)
    """Batches that were sent, in the order of their numbers."""
    requesting: asyncio.Task[None] | None = None

    def number(self, records: list[Pending]) -> ProducerBatch:
        """Return the next batch; more than 2³¹ records are more than a simulation sends."""
        assert self.producer_id is not None
        batch = ProducerBatch(records, Numbering(self.producer_id, self.epoch, self.sequence))
        self.sequence += len(records)
        self.undecided.append(batch)
        return batch

    def batch_of(self, records: Sequence[Pending]) -> ProducerBatch | None:
        """Return the batch of these records, unless it was given up."""
        return next((batch for batch in self.undecided if batch.records is records), None)


class IdempotentProducer(SimulatedProducer):
    """One producer process whose records are written once or not at all."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        super().__init__(plan, recorder, transport, bootstrap)
        self._numbered = {key: Numbered() for key in self._queues}

    def _close(self) -> None:
        for numbered in self._numbered.values():
            if numbered.requesting is not None:
                numbered.requesting.cancel()
        super()._close()

    # --- sending ---

    def _pump(self, key: TopicPartition) -> None:
        """Send again what must be, in its order, and then what is new."""
        numbered = self._numbered[key]
        for batch in numbered.undecided:
            if batch.retry_s is NEVER_S:
                continue
            connection = self._free_connection(key)
            if connection is None or batch.retry_s > now_s():
                return
            self._send_numbered(key, batch)
        while self._queues[key] and self._has_number(key) and self._free_connection(key) is not None:
            records = self._next_batch(self._queues[key])
            if not records:
                return
            self._send_numbered(key, numbered.number(records))

    def _send_numbered(self, key: TopicPartition, batch: ProducerBatch) -> None:
        connection = self._free_connection(key)
        assert connection is not None
        batch.retry_s = NEVER_S
        self._send_batch(connection, key, batch.records, batch.numbering)

    def _has_number(self, key: TopicPartition) -> bool:
        """Whether a new batch may be numbered; asks for a producer id when there is none."""
        numbered = self._numbered[key]
        if numbered.producer_id is None:
            if not numbered.undecided and (numbered.requesting is None or numbered.requesting.done()):
                numbered.requesting = asyncio.ensure_future(self._request_id(key))
            return False
        most: int = self._plan.parameters["max_in_flight"]
        return len(numbered.undecided) < most

    async def _request_id(self, key: TopicPartition) -> None:
        """Ask one broker after the other for a fresh producer id."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TIMEOUT_MS)
        for attempt in count():
            brokers = self._client.broker_ids
            if brokers:
                try:
                    answer = await self._client.ask(brokers[attempt % len(brokers)], request, INIT_PRODUCER_ID_VERSION)
                except PeerError:
                    self._client.refresh_soon()
                else:
                    if answer.error_code == ErrorCode.NONE:
                        numbered = self._numbered[key]
                        numbered.producer_id, numbered.epoch = answer.producer_id, answer.producer_epoch
                        numbered.sequence = 0
                        break
            await asyncio.sleep(RETRY_S)
        self._pump(key)

    # --- answers ---

    def _acknowledged(self, key: TopicPartition, records: Sequence[Pending], base_offset: int) -> None:
        batch = self._numbered[key].batch_of(records)
        if batch is not None:
            self._numbered[key].undecided.remove(batch)
            super()._acknowledged(key, records, base_offset)

    def _again(self, key: TopicPartition, records: Sequence[Pending], code: int) -> None:
        """Let a batch be sent again as it is, unless every attempt would end the same way."""
        batch = self._numbered[key].batch_of(records)
        if batch is None:
            return
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:  # too long ago for the broker to know at which offset
            self._acknowledged(key, records, -1)
            return
        if code in REFUSED_WHATEVER_THE_STATE or records[0].attempts > self._plan.parameters["retries"]:
            self._give_up_from(key, batch, code)
        else:
            batch.retry_s = now_s() + RETRY_S
            self._client.refresh_soon()
        asyncio.get_running_loop().call_later(RETRY_S, self._pump, key)

    def _expire(self) -> None:
        super()._expire()
        for key, numbered in self._numbered.items():
            late = (b for b in numbered.undecided if b.retry_s < NEVER_S and b.records[0].expires_s <= now_s())
            batch = next(late, None)
            if batch is not None:
                self._give_up_from(key, batch, ErrorCode.REQUEST_TIMED_OUT)
                self._pump(key)

    def _give_up_from(self, key: TopicPartition, first: ProducerBatch, code: int) -> None:
        """Give up a batch and those after it; the partition goes on under another id."""
        numbered = self._numbered[key]
        behind = False
        before: deque[ProducerBatch] = deque()
        for batch in numbered.undecided:
            behind = behind or batch is first
            if not behind:
                before.append(batch)
                continue
            for pending in batch.records:
                self._give_up(pending, code if batch is first else ErrorCode.REQUEST_TIMED_OUT)
        numbered.undecided = before
        numbered.producer_id = None
