"""A process with transactional ids, in virtual time: does what its rules say."""

import asyncio
from collections.abc import Iterable

from harness.broker.log.records import Record
from harness.client_rules import steps
from harness.client_rules.sending import Sending
from harness.client_rules.transacting import Transacting
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.metadata import ClusterClient, now_s
from harness.simulation.clients.producer import Pending
from harness.simulation.clients.transactional_producer import TransactionalProducer
from harness.simulation.evidence import wall_ms
from harness.simulation.transport import MemoryTransport
from harness.store.history import Operation
from harness.store.recording import Recorder


class TransactionalProducers:
    """The producers of one process, by transactional id."""

    def __init__(self, plan: ClientPlan, sending: Sending) -> None:
        self._plan = plan
        self._sending = sending
        self._producers: dict[str, TransactionalProducer] = {}

    async def act(self, step: steps.TransactionStep, client: ClusterClient) -> steps.StepResult:
        """Do one step."""
        match step:
            case steps.InitTransactions(transactional_id):
                self._close(transactional_id)
                made = TransactionalProducer(self._plan, client, transactional_id, self._sending)
                self._producers[transactional_id] = made
                return await made.init()
            case steps.BeginTransaction(transactional_id):
                self._producers[transactional_id].begin()
            case steps.Send(invoked):
                return self._producers[invoked.transactional_id].send(self._pending(invoked))
            case steps.AwaitSends(transactional_id):
                return await self._producers[transactional_id].flush()
            case steps.EndTransaction(transactional_id, commit):
                return await self._producers[transactional_id].end(commit=commit)
            case steps.CloseProducer(transactional_id):
                self._close(transactional_id)
            case steps.SendOffsets():
                raise AssertionError("a process without a group has no offsets")
        return steps.DONE

    def producer(self, transactional_id: str) -> TransactionalProducer:
        """Return the producer of an id."""
        return self._producers[transactional_id]

    def close(self) -> None:
        """Drop all of them."""
        for transactional_id in list(self._producers):
            self._close(transactional_id)

    def _close(self, transactional_id: str) -> None:
        producer = self._producers.pop(transactional_id, None)
        if producer is not None:
            producer.close()

    def _pending(self, invoked: Operation) -> Pending:
        content = self._sending.content(invoked, wall_ms())
        record = Record(
            key=invoked.key.encode(), value=content.value, timestamp_ms=content.timestamp_ms, headers=content.headers
        )
        expires_s = now_s() + self._plan.parameters["message_timeout_ms"] / 1000
        return Pending(invoked, record, now_s(), expires_s)


class SimulatedTransactor:
    """One process that writes transactions."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        self._rules = Transacting(plan, recorder)
        self._producers = TransactionalProducers(plan, self._rules.sending)
        self._client = ClusterClient(
            transport,
            bootstrap,
            plan.topics,
            client_id=plan.process,
            timeout_s=plan.parameters["request_timeout_ms"] / 1000,
            changed=lambda: None,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Write transactions until `stop` is set."""
        await steps.carry_out_async(self._rules.script(stop.is_set), self._act)
        self._producers.close()
        self._client.close()

    async def _act(self, step: steps.Step) -> steps.StepResult:
        if isinstance(step, steps.Pause):
            await asyncio.sleep(step.length_s)
            return steps.DONE
        assert isinstance(step, steps.TransactionStep)
        return await self._producers.act(step, self._client)
