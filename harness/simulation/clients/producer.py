"""A producer: unique values at a steady rate, batches a partition, a limit in flight, retries until the time is up.

Without idempotence: a retried batch may be in the log twice, and may be overtaken.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from harness.broker.log.batch import UNNUMBERED, Numbering, build_batch, parse_header, recompressed
from harness.broker.log.compression import CODEC_NAMES, NO_COMPRESSION
from harness.broker.log.records import Record
from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import ProduceRequest
from harness.broker.wire.transport import Message, PeerError
from harness.client_rules.outcomes import REFUSED_WHATEVER_THE_STATE
from harness.client_rules.sending import Sending
from harness.client_rules.steps import partitions_of
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.metadata import ClusterClient, now_s
from harness.simulation.evidence import wall_ms
from harness.simulation.transport import MemoryConnection, MemoryTransport
from harness.store.history import Operation
from harness.store.recording import Recorder
from harness.values import TopicPartition

PRODUCE_VERSION = 8
CODECS = {name: codec for codec, name in CODEC_NAMES.items()}
RETRY_S = 0.05
NO_ACKS = 0
BATCH_BYTES = 1_000_000
"""librdkafka's `batch.size`, less than what brokers take by default; a larger record goes alone."""
RECORD_BYTES = 40
"""More than a record takes beside key and value."""


@dataclass(slots=True, eq=False)
class Pending:
    """A record that is not decided."""

    invoked: Operation
    record: Record
    ready_s: float
    """When it may be sent: batches wait a moment for more."""
    expires_s: float
    attempts: int = 0

    @property
    def size_bytes(self) -> int:
        """At most what it adds to a batch."""
        return RECORD_BYTES + len(self.record.key or b"") + len(self.record.value or b"")


class SimulatedProducer:
    """One producer process."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        parameters = plan.parameters
        self._rules = Sending(plan, recorder)
        self._plan = plan
        self._acks: int = parameters["acks"]
        self._queues: dict[TopicPartition, deque[Pending]] = {key: deque() for key in partitions_of(plan.topics)}
        self._in_flight: dict[MemoryConnection, int] = {}
        self._undecided = 0
        self._codec = CODECS[parameters.get("compression", "none")]
        self._linger_s = parameters["linger_ms"] / 1000
        self._request_timeout_s = min(parameters["request_timeout_ms"], parameters["message_timeout_ms"]) / 1000
        self._client = ClusterClient(
            transport,
            bootstrap,
            plan.topics,
            client_id=plan.process,
            timeout_s=self._request_timeout_s,
            changed=self._pump_all,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Send at the plan's rate until `stop` is set, then wait for what is still on its way."""
        interval_s = 1.0 / self._plan.parameters["rate_per_s"]
        while not stop.is_set():
            if not self._rules.done:
                self._send()
            await asyncio.sleep(interval_s)
            self._expire()
        deadline_s = now_s() + self._rules.flush_s
        while self._undecided and now_s() < deadline_s:
            await asyncio.sleep(RETRY_S)
            self._expire()
        self._close()

    def _close(self) -> None:
        self._client.close()

    # --- sending ---

    def _send(self) -> None:
        """Send one record."""
        invoked = self._rules.invoke()
        sent_s = now_s()
        content = self._rules.content(invoked, wall_ms())
        record = Record(
            key=invoked.key.encode(), value=content.value, timestamp_ms=content.timestamp_ms, headers=content.headers
        )
        expires_s = sent_s + self._plan.parameters["message_timeout_ms"] / 1000
        key = (invoked.topic, invoked.partition)
        self._queues[key].append(Pending(invoked, record, sent_s + self._linger_s, expires_s))
        self._undecided += 1
        if self._linger_s:
            asyncio.get_running_loop().call_later(self._linger_s, self._pump, key)
        else:
            self._pump(key)

    def _pump_all(self) -> None:
        for key in self._queues:
            self._pump(key)

    def _pump(self, key: TopicPartition) -> None:
        """Send what a partition has to send, as far as limits allow."""
        queue = self._queues[key]
        while queue:
            connection = self._free_connection(key)
            if connection is None:
                return
            batch = self._next_batch(queue)
            if not batch:
                return
            self._send_batch(connection, key, batch)

    def _free_connection(self, key: TopicPartition) -> MemoryConnection | None:
        """Return the connection to a partition's leader, if there is one that may take a request more."""
        leader = self._client.leaders.get(key)
        if leader is None:
            self._client.refresh_soon()
            return None
        connection = self._client.connection(leader.broker_id)
        if connection is None or self._in_flight.get(connection, 0) >= self._plan.parameters["max_in_flight"]:
            return None
        return connection

    def _next_batch(self, queue: deque[Pending]) -> list[Pending]:
        """Return all that waits, once the oldest has waited for long enough; at most what one batch holds."""
        if queue[0].ready_s > now_s():
            return []
        batch = [queue.popleft()]
        size = batch[0].size_bytes
        while queue and len(batch) < self._plan.parameters["batch_records"]:
            size += queue[0].size_bytes
            if size > BATCH_BYTES:
                break
            batch.append(queue.popleft())
        return batch

    def _send_batch(
        self, connection: MemoryConnection, key: TopicPartition, batch: list[Pending], numbering: Numbering = UNNUMBERED
    ) -> None:
        for pending in batch:
            pending.attempts += 1
        topic, number = key
        data = ProduceRequest.TopicProduceData
        records = build_batch([each.record for each in batch], numbering=numbering)
        if self._codec != NO_COMPRESSION:
            records = bytes(recompressed(records, parse_header(records), self._codec))
        partition = data.PartitionProduceData(index=number, records=records)
        request = ProduceRequest(
            transactional_id=None,
            acks=self._acks,
            timeout_ms=int(self._request_timeout_s * 1000),
            topic_data=[data(name=topic, partition_data=[partition])],
        )
        answer = connection.send(request, PRODUCE_VERSION, answered=self._acks != NO_ACKS)
        if self._acks == NO_ACKS:
            self._acknowledged(key, batch, -1)
            return
        self._in_flight[connection] = self._in_flight.get(connection, 0) + 1
        # A broker answers within the time-out of the request; one that does not is given up.
        timer = asyncio.get_running_loop().call_later(2 * self._request_timeout_s, connection.close)
        answer.add_done_callback(partial(self._answered, connection, key, batch, timer))

    # --- answers ---

    def _answered(
        self,
        connection: MemoryConnection,
        key: TopicPartition,
        batch: list[Pending],
        timer: asyncio.TimerHandle,
        answer: "asyncio.Future[Message]",
    ) -> None:
        timer.cancel()
        self._in_flight[connection] -= 1
        if not self._in_flight[connection]:
            del self._in_flight[connection]
        error = answer.exception()
        if error is not None:
            assert isinstance(error, PeerError)
            self._again(key, batch, ErrorCode.NETWORK_EXCEPTION)
            return
        partition = answer.result().responses[0].partition_responses[0]
        if partition.error_code == ErrorCode.NONE:
            self._acknowledged(key, batch, partition.base_offset)
        else:
            self._again(key, batch, partition.error_code)
        keys = list(self._queues)
        following = keys.index(key) + 1
        for each in (*keys[following:], *keys[:following]):  # in turn: a backlog of one does not stop the others
            self._pump(each)

    def _acknowledged(self, _key: TopicPartition, batch: Sequence[Pending], base_offset: int) -> None:
        for delta, pending in enumerate(batch):
            self._undecided -= 1
            self._rules.acknowledged(pending.invoked, base_offset + delta if base_offset >= 0 else -1)

    def _again(self, key: TopicPartition, batch: Sequence[Pending], code: int) -> None:
        """Put a batch back at the head of its queue, but for the records that are not to be tried again."""
        retries = self._plan.parameters["retries"]
        still = []
        for pending in batch:
            if code in REFUSED_WHATEVER_THE_STATE or pending.attempts > retries:
                self._give_up(pending, code)
            else:
                pending.ready_s = now_s() + RETRY_S
                still.append(pending)
        self._queues[key].extendleft(reversed(still))
        self._client.refresh_soon()
        asyncio.get_running_loop().call_later(RETRY_S, self._pump, key)

    def _expire(self) -> None:
        """Give up what was tried for too long."""
        for queue in self._queues.values():
            while queue and queue[0].expires_s <= now_s():
                self._give_up(queue.popleft(), ErrorCode.REQUEST_TIMED_OUT)

    def _give_up(self, pending: Pending, code: int) -> None:
        self._undecided -= 1
        self._rules.given_up(pending.invoked, code, described(code), tried_once=pending.attempts == 1)
