"""A consume-transform-produce member in virtual time: a member of a group with a transactional producer."""

import asyncio
from collections.abc import Iterable

from harness.client_rules import steps
from harness.client_rules.piping import Piping
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.metadata import ClusterClient
from harness.simulation.clients.offsets import NO_MEMBER
from harness.simulation.clients.subscriber import SimulatedSubscriber
from harness.simulation.clients.transactor import TransactionalProducers
from harness.simulation.transport import MemoryTransport


class SimulatedPipe(SimulatedSubscriber):
    """One member."""

    _rules: Piping

    def __init__(
        self, plan: ClientPlan, rules: Piping, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        super().__init__(plan, rules, transport, bootstrap)
        self._producers = TransactionalProducers(plan, rules.sending)
        self._read_as = NO_MEMBER
        """Its identity when it read the last records: without one, as a member has that is out of its group, the
        coordinator would take offsets of a generation that is over (KIP-447)."""
        self._outputs = ClusterClient(
            transport,
            bootstrap,
            plan.parameters["outputs"],
            client_id=plan.process,
            timeout_s=plan.parameters["request_timeout_ms"] / 1000,
            changed=lambda: None,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Do what the rules say, to the end that they come to after `stop` is set."""
        await super().run(stop)
        self._producers.close()
        self._outputs.close()

    async def _act(self, step: steps.Step) -> steps.StepResult:
        if isinstance(step, steps.SendOffsets):
            if self._read_as == NO_MEMBER:
                return steps.NO_MEMBER_YET
            producer = self._producers.producer(step.transactional_id)
            return await producer.send_offsets(self._rules.group, step.positions, self._read_as)
        if isinstance(step, steps.TransactionStep):
            return await self._producers.act(step, self._outputs)
        answer = await super()._act(step)
        if answer.records and self._membership.identity.generation >= 0:
            self._read_as = self._membership.identity
        return answer
