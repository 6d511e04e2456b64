"""A producer: unique values at a steady rate, batches a partition, a limit in flight, retries until the time is up.

Without idempotence: a retried batch may be in the log twice, and may be overtaken.
"""

import asyncio
import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from harness.broker.log.batch import UNNUMBERED, Numbering, build_batch
from harness.broker.log.records import Record
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ProduceRequest
from harness.broker.wire.transport import Message, PeerError
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.metadata import ClusterClient, Place
from harness.simulation.clients.outcomes import REFUSED_WHATEVER_THE_STATE, described, send_outcome
from harness.simulation.evidence import wall_ms
from harness.simulation.transport import MemoryConnection, MemoryTransport
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder

PRODUCE_VERSION = 8
RETRY_S = 0.05
NO_ACKS = 0
FLUSH_MARGIN_S = 2.0
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
        self.recorder = recorder
        self._plan = plan
        self._rng = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
        self._acks: int = parameters["acks"]
        self._places = [(topic, p) for topic, count in sorted(plan.topics.items()) for p in range(count)]
        self._queues: dict[Place, deque[Pending]] = {place: deque() for place in self._places}
        self._in_flight: dict[MemoryConnection, int] = {}
        self._sent = 0
        self._undecided = 0
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
            self._send()
            await asyncio.sleep(interval_s)
            self._expire()
        deadline_s = now_s() + self._plan.parameters["message_timeout_ms"] / 1000 + FLUSH_MARGIN_S
        while self._undecided and now_s() < deadline_s:
            await asyncio.sleep(RETRY_S)
            self._expire()
        self._close()

    def _close(self) -> None:
        self._client.close()

    # --- sending ---

    def _send(self) -> None:
        """Send one record; a key always goes to the same partition."""
        parameters = self._plan.parameters
        key_number = self._rng.randrange(parameters["keys"])
        topic, partition = self._places[key_number % len(self._places)]
        self._sent += 1
        prefix = f"{self._plan.process}-"
        value = f"{prefix}{self._sent:0{max(1, parameters['value_bytes'] - len(prefix))}d}"
        invoked = self.recorder.invoke(
            OpKind.SEND, topic=topic, partition=partition, key=f"key-{key_number}", value=value, acks=self._acks
        )
        sent_s = now_s()
        record = Record(key=invoked.key.encode(), value=value.encode(), timestamp_ms=wall_ms())
        expires_s = sent_s + parameters["message_timeout_ms"] / 1000
        place = (topic, partition)
        self._queues[place].append(Pending(invoked, record, sent_s + self._linger_s, expires_s))
        self._undecided += 1
        if self._linger_s:
            asyncio.get_running_loop().call_later(self._linger_s, self._pump, place)
        else:
            self._pump(place)

    def _pump_all(self) -> None:
        for place in self._places:
            self._pump(place)

    def _pump(self, place: Place) -> None:
        """Send what a partition has to send, as far as limits allow."""
        queue = self._queues[place]
        while queue:
            connection = self._free_connection(place)
            if connection is None:
                return
            batch = self._next_batch(queue)
            if not batch:
                return
            self._send_batch(connection, place, batch)

    def _free_connection(self, place: Place) -> MemoryConnection | None:
        """Return the connection to a partition's leader, if there is one that may take a request more."""
        leader = self._client.leaders.get(place)
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
        self, connection: MemoryConnection, place: Place, batch: list[Pending], numbering: Numbering = UNNUMBERED
    ) -> None:
        for pending in batch:
            pending.attempts += 1
        topic, number = place
        data = ProduceRequest.TopicProduceData
        records = build_batch([each.record for each in batch], numbering=numbering)
        partition = data.PartitionProduceData(index=number, records=records)
        request = ProduceRequest(
            transactional_id=None,
            acks=self._acks,
            timeout_ms=int(self._request_timeout_s * 1000),
            topic_data=[data(name=topic, partition_data=[partition])],
        )
        answer = connection.send(request, PRODUCE_VERSION, answered=self._acks != NO_ACKS)
        if self._acks == NO_ACKS:
            self._acknowledged(place, batch, -1)
            return
        self._in_flight[connection] = self._in_flight.get(connection, 0) + 1
        # A broker answers within the time-out that it was given; one that does not is given up.
        timer = asyncio.get_running_loop().call_later(2 * self._request_timeout_s, connection.close)
        answer.add_done_callback(partial(self._answered, connection, place, batch, timer))

    # --- answers ---

    def _answered(
        self,
        connection: MemoryConnection,
        place: Place,
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
            self._again(place, batch, ErrorCode.NETWORK_EXCEPTION)
            return
        told = answer.result().responses[0].partition_responses[0]
        if told.error_code == ErrorCode.NONE:
            self._acknowledged(place, batch, told.base_offset)
        else:
            self._again(place, batch, told.error_code)
        self._pump(place)

    def _acknowledged(self, _place: Place, batch: Sequence[Pending], base_offset: int) -> None:
        for delta, pending in enumerate(batch):
            self._undecided -= 1
            offset = base_offset + delta if base_offset >= 0 else -1
            self.recorder.end(pending.invoked, OpType.OK, offset=offset)

    def _again(self, place: Place, batch: Sequence[Pending], code: int) -> None:
        """Put a batch back at the head of its queue, but for the records that are not to be tried again."""
        retries = self._plan.parameters["retries"]
        kept = []
        for pending in batch:
            if code in REFUSED_WHATEVER_THE_STATE or pending.attempts > retries:
                self._give_up(pending, code)
            else:
                pending.ready_s = now_s() + RETRY_S
                kept.append(pending)
        self._queues[place].extendleft(reversed(kept))
        self._client.refresh_soon()
        asyncio.get_running_loop().call_later(RETRY_S, self._pump, place)

    def _expire(self) -> None:
        """Give up what was tried for too long."""
        for queue in self._queues.values():
            while queue and queue[0].expires_s <= now_s():
                self._give_up(queue.popleft(), ErrorCode.REQUEST_TIMED_OUT)

    def _give_up(self, pending: Pending, code: int) -> None:
        self._undecided -= 1
        outcome = send_outcome(code, attempts=pending.attempts)
        self.recorder.end(pending.invoked, outcome, error=described(code))


def now_s() -> float:
    """Return the virtual time in seconds."""
    return asyncio.get_running_loop().time()
