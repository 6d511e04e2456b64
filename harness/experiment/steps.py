"""Takes the steps of a scenario, one after the other, up to the first that cannot be taken.

What a step injects stays in force until another one heals it, or until the last step; then all is healed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.contracts.faults import Effect
from harness.contracts.targets import Role
from harness.errors import ClusterError, HarnessError
from harness.experiment.load import Load
from harness.experiment.nemesis import Nemesis
from harness.progress import Progress
from harness.scenario.conditions import parse_condition, roles_in
from harness.scenario.model import Scenario, StepSpec, TopicSpec
from harness.scenario.plan import Plan, PlannedFault
from harness.system.waiting import until
from harness.verdict import FaultVerdict
from harness.zookeeper.view import ClusterView, PartitionView

WRITING_S = 1.0
"""A checkpoint that is due is written within this time."""

RoleBinding = Mapping[str, int]
"""The broker of each role."""


async def bind_roles(scenario: Scenario, plan: Plan, view: ClusterView) -> dict[str, int]:
    """Return the broker of each role: the current controller, and the others as the seed drew them, in their order.

    Raises:
        ClusterError: ZooKeeper does not answer, or there is no controller.
    """
    controlling = [name for name, role in scenario.roles.items() if role == Role.CONTROLLER.value]
    controller = (await view.controller()).broker_id if controlling else None
    if controlling and controller not in plan.casting:
        raise ClusterError(f"there is no controller to be {controlling[0]}")
    others = (broker for broker in plan.casting if broker != controller)
    return {
        name: controller if controller is not None and role == Role.CONTROLLER.value else next(others)
        for name, role in scenario.roles.items()
    }


def replica_assignment(topics: Sequence[TopicSpec], roles: RoleBinding) -> list[TopicSpec]:
    """Return the topics with broker ids for the roles that hold their replicas."""
    return [
        topic.model_copy(update={"replicas": [str(roles.get(name, name)) for name in topic.replicas]})
        for topic in topics
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A fault in force."""

    brokers: frozenset[int]
    task: asyncio.Task[None]
    released: asyncio.Event

    async def heal(self) -> None:
        self.released.set()
        await self.task


@dataclass(slots=True, kw_only=True)
class Steps:
    """The steps of one run, taken once."""

    nemesis: Nemesis
    load: Load
    scenario: Scenario
    plan: Plan
    roles: RoleBinding
    checkpoint_s: float
    """Interval at which a broker writes its high watermarks."""
    progress: Progress
    _held: list[_Held] = field(default_factory=list)
    """The latest last."""

    async def run(self) -> str:
        """Take every step, then heal what is in force; return why one could not be taken, empty if all were."""
        steps = self.scenario.steps
        faults = iter(self.plan.faults)
        try:
            for index, step in enumerate(steps):
                try:
                    await self._take(index, step, next(faults) if step.inject is not None else None)
                except HarnessError as error:
                    return f"step {index + 1} of {len(steps)} could not be taken: {error}"
            return ""
        finally:
            while self._held:
                await self._held.pop().heal()

    async def _take(self, index: int, step: StepSpec, fault: PlannedFault | None) -> None:
        if fault is not None:
            await self._inject(fault)
        elif step.heal is not None:
            await self._heal(self._brokers(step.heal))
        elif step.write is not None:
            await self._write(index, step.write, step.within_s)
        elif step.when is not None:
            await self._wait_until(step.when, step.within_s)
        else:
            await asyncio.sleep(step.wait_s or 0.0)

    def _brokers(self, text: str) -> list[int]:
        return [self.roles[name] for name in roles_in(text)]

    async def _inject(self, planned: PlannedFault) -> None:
        """Inject a fault; raises ClusterError if its effect was not seen."""
        brokers = self._brokers(planned.target)
        certain = planned.model_copy(update={"target": ",".join(map(str, brokers)), "brokers": brokers})
        released = asyncio.Event()
        judged = asyncio.Event()
        effects: list[Effect] = []

        async def until_released(_due_s: float, effect: Effect) -> None:
            effects.append(effect)
            judged.set()
            await released.wait()

        task = asyncio.create_task(self.nemesis.hold(certain, until_released))
        task.add_done_callback(lambda _: judged.set())
        self._held.append(_Held(brokers=frozenset(brokers), task=task, released=released))
        await judged.wait()
        if not effects:
            await task
            raise ClusterError(f"{planned.fault} {planned.target} had no effect")
        if effects[0].verdict is not FaultVerdict.CONFIRMED:
            raise ClusterError(f"{planned.fault} {planned.target}: {effects[0].detail}")

    async def _heal(self, brokers: Sequence[int]) -> None:
        """Undo all that is in force on exactly these brokers, the latest first."""
        for held in [held for held in reversed(self._held) if held.brokers <= set(brokers)]:
            self._held.remove(held)
            await held.heal()

    async def _write(self, index: int, records: int, within_s: float) -> None:
        """Send records by a producer, and wait until every one is acknowledged."""
        client = next(client for client in self.plan.clients if client.step == index)
        progress = self.load.clients.progress()

        async def acknowledged() -> int:
            progress.look()
            return progress.sent[client.process]

        await self.load.start_of_step(client)
        what = f"{records} records acknowledged"
        await until(acknowledged, lambda seen: seen >= records, what=what, timeout_s=within_s)
        self.progress.message(f"{client.process}: {what}")
        await self.load.stop_of_step(client)

    async def _wait_until(self, text: str, within_s: float) -> None:
        """Wait until a condition holds, or for the next checkpoint."""
        condition = parse_condition(text)
        if not condition.topic:
            await asyncio.sleep(self.checkpoint_s + WRITING_S)
            return
        wanted = frozenset(self.roles[name] for name in condition.roles)

        def there(seen: PartitionView | None) -> bool:
            return seen is not None and wanted == ({seen.leader} if condition.leader else set(seen.isr))

        async def look() -> PartitionView | None:
            key = (condition.topic, condition.partition)
            partitions = await self.nemesis.context.view.partitions()
            seen = [each for each in partitions if (each.topic, each.partition) == key]
            return next(iter(seen), None)

        await until(look, there, what=text, timeout_s=within_s)
        self.progress.message(text)
