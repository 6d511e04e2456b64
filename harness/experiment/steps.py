"""Takes the steps of a scenario, one after the other, up to the first that cannot be taken.

What a step injects stays in force until another one heals it, or until the last step; then all is healed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.cluster.links.rules import Caught
from harness.contracts.faults import Effect, Injection
from harness.contracts.messages import caught_by
from harness.contracts.targets import COORDINATORS, Role, parse_target, resolve
from harness.errors import ClusterError, HarnessError
from harness.events import GroupStateChange, TransactionStateChange
from harness.experiment.load import Load
from harness.experiment.nemesis import Nemesis
from harness.progress import Progress
from harness.scenario.conditions import Condition, parse_condition, roles_in
from harness.scenario.model import Scenario, StepSpec, TopicSpec
from harness.scenario.plan import Plan, PlannedFault
from harness.system.waiting import until
from harness.values import NO_BROKER
from harness.verdict import FaultVerdict
from harness.zookeeper.view import ClusterView, PartitionView

if TYPE_CHECKING:
    from harness.experiment.requests import Requests

WRITING_S = 1.0
"""A checkpoint that is due is written within this time."""

CONTROLLER_S = 10.0
"""Brokers that have just started elect a controller within this time."""
_STATES_OF_GROUPS = (GroupStateChange.ev, "group", "generation")
_STATES_OF_TRANSACTIONS = (TransactionStateChange.ev, "transactional_id", "producer_epoch")
"""The line that says a state, the field that names its subject, and the one that counts within a coordinator epoch."""

RoleBinding = Mapping[str, int]
"""The broker of each role."""


async def bind_roles(scenario: Scenario, plan: Plan, view: ClusterView) -> dict[str, int]:
    """Return the broker of each role: the current controller, and the others as the seed drew them, in their order.

    Raises:
        ClusterError: ZooKeeper does not answer, or there is no controller within `CONTROLLER_S`.
    """
    controlling = [name for name, role in scenario.roles.items() if role == Role.CONTROLLER.value]
    controller = None
    if controlling:
        elected = partial(_controller_of, view)
        what = f"a controller to be {controlling[0]}"
        controller = await until(elected, lambda seen: seen in plan.casting, what=what, timeout_s=CONTROLLER_S)
    others = (broker for broker in plan.casting if broker != controller)
    return {
        name: controller if controller is not None and role == Role.CONTROLLER.value else next(others)
        for name, role in scenario.roles.items()
    }


async def _controller_of(view: ClusterView) -> int:
    return (await view.controller()).broker_id


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
    judged: asyncio.Event
    effects: list[Effect]
    injection: asyncio.Future[Injection]
    """Done when it is in force."""

    async def heal(self) -> None:
        self.released.set()
        await self.task


@dataclass(slots=True, kw_only=True)
class Steps:
    """The steps of one run, taken once."""

    nemesis: Nemesis
    load: Load
    requests: "Requests"
    scenario: Scenario
    plan: Plan
    roles: RoleBinding
    checkpoint_s: float
    """Interval at which a broker writes its high watermarks."""
    progress: Progress
    _held: list[_Held] = field(default_factory=list)
    """The latest last."""
    _messages: dict[str, _Held] = field(default_factory=dict)
    """What is intercepted, by name."""
    _log_ends: dict[int, int] = field(default_factory=dict)
    """Where brokers' logs ended before the last step that did something."""

    async def run(self) -> str:
        """Take every step, then heal what is in force; return why one could not be taken, empty if all were."""
        steps = self.scenario.steps
        faults = iter(self.plan.faults)
        try:
            for index, step in enumerate(steps):
                try:
                    await self._take(index, step, next(faults) if step.fault is not None else None)
                except HarnessError as error:
                    return f"step {index + 1} of {len(steps)} could not be taken: {error}"
            return ""
        finally:
            await self.requests.close()
            for held in (*self._messages.values(), *reversed(self._held)):
                await held.heal()

    async def _take(self, index: int, step: StepSpec, fault: PlannedFault | None) -> None:
        if step.when is None:
            logs = self.nemesis.context.state_changes
            self._log_ends = {broker: await logs.end_of(broker) for broker in self.roles.values()}
        if fault is not None and step.messages:
            await self._intercept(step.messages, fault)
        elif step.release is not None:
            await self._release(step.release)
        elif fault is not None:
            await self._inject(fault)
        elif step.heal is not None:
            await self._heal(self._brokers(step.heal))
        elif step.write is not None:
            await self._write(index, step.write, step.within_s)
        elif step.when is not None:
            await self._wait_until(step.when, step.within_s)
        elif step.ask is not None:
            await self.requests.send(step, partial(self._asked, step.target))
        elif step.answer is not None:
            await self.requests.awaited(step)
        else:
            await asyncio.sleep(step.wait_s or 0.0)

    def _brokers(self, text: str) -> list[int]:
        return [self.roles[name] for name in roles_in(text)]

    async def _asked(self, target: str) -> int:
        """Return the broker that a request goes to now, -1 while there is none."""
        if target in self.roles:
            return self.roles[target]
        wanted = parse_target(target)
        if wanted.role in COORDINATORS:
            of_transactions = wanted.role is Role.TRANSACTION_COORDINATOR
            return await self.requests.coordinator(wanted.group, of_transactions=of_transactions)
        return next(iter(await resolve(wanted, self.nemesis.context.view)), NO_BROKER)

    def _started(self, planned: PlannedFault) -> _Held:
        """Begin a fault, which stays in force until it is healed."""
        brokers = self._brokers(planned.target)
        certain = planned.model_copy(update={"target": ",".join(map(str, brokers)), "brokers": brokers})
        released, effects = asyncio.Event(), list[Effect]()
        injection: asyncio.Future[Injection] = asyncio.get_running_loop().create_future()

        async def until_released(_due_s: float, effect: Effect) -> None:
            effects.append(effect)
            judged.set()
            await released.wait()

        judged = asyncio.Event()
        task = asyncio.create_task(self.nemesis.hold(certain, until_released, injection.set_result))
        task.add_done_callback(lambda _: judged.set())
        return _Held(
            brokers=frozenset(brokers),
            task=task,
            released=released,
            judged=judged,
            effects=effects,
            injection=injection,
        )

    async def _inject(self, planned: PlannedFault) -> None:
        """Inject a fault; raises ClusterError if its effect was not seen."""
        held = self._started(planned)
        self._held.append(held)
        await _require_effect(held, planned)

    async def _intercept(self, name: str, planned: PlannedFault) -> None:
        """Intercept messages from now on; raises ClusterError when that is impossible."""
        held = self._messages[name] = self._started(planned)
        ends: set[asyncio.Future[Any]] = {held.injection, held.task}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not held.injection.done():
            raise ClusterError(f"messages {name} cannot be intercepted")

    async def _caught(self, name: str) -> list[Caught]:
        return await caught_by(self.nemesis.context.driver, self._messages[name].injection.result())

    async def _release(self, name: str) -> None:
        """Let messages go; raises ClusterError if there are none."""
        if not await self._caught(name):
            raise ClusterError(f"no message {name} was caught")
        await self._messages.pop(name).heal()

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
        if condition == Condition():
            await asyncio.sleep(self.checkpoint_s + WRITING_S)
            return
        if condition.messages:
            caught = partial(self._caught, condition.messages)
            await until(caught, lambda seen: len(seen) >= condition.count, what=text, timeout_s=within_s)
        elif condition.state:
            state = partial(self._state_of, condition)
            await until(state, lambda seen: seen == condition.state, what=text, timeout_s=within_s)
        elif condition.event:
            logged = partial(self._logged, condition)
            await until(logged, lambda seen: seen > 0, what=text, timeout_s=within_s)
        else:
            wanted = frozenset(self.roles[name] for name in condition.roles)
            there = partial(_is_so, condition, wanted)
            await until(partial(self._partition, condition), there, what=text, timeout_s=within_s)
        self.progress.message(text)

    async def _partition(self, condition: Condition) -> PartitionView | None:
        key = (condition.topic, condition.partition)
        partitions = await self.nemesis.context.view.partitions()
        return next((each for each in partitions if (each.topic, each.partition) == key), None)

    async def _logged(self, condition: Condition) -> int:
        """Return how often a broker has logged an event since the last step that did something."""
        broker = self.roles[condition.broker]
        position = self._log_ends.get(broker, 0)
        events, _ = await self.nemesis.context.state_changes.after(broker, position, condition.event)
        place = {"topic": condition.topic, "partition": condition.partition} if condition.topic else {}
        return sum(place.items() <= event.items() for event in events)

    async def _state_of(self, condition: Condition) -> str:
        """Return the state of a group or transaction, as the latest coordinator logs it; empty if none does."""
        ev, name, order = _STATES_OF_GROUPS if condition.group else _STATES_OF_TRANSACTIONS
        wanted = condition.group or condition.transactional_id
        latest = (-1, -1, "")
        for status in (await self.nemesis.context.driver.status()).brokers:
            events, _ = await self.nemesis.context.state_changes.after(status.broker_id, 0, ev)
            for last in [event for event in events if event[name] == wanted][-1:]:
                latest = max(latest, (last["coordinator_epoch"], last[order], last["to_state"]))
        return latest[-1]


async def _require_effect(held: _Held, planned: PlannedFault) -> None:
    await held.judged.wait()
    if not held.effects:
        await held.task
        raise ClusterError(f"{planned.fault} {planned.target} had no effect")
    if held.effects[0].verdict is not FaultVerdict.CONFIRMED:
        raise ClusterError(f"{planned.fault} {planned.target}: {held.effects[0].detail}")


def _is_so(condition: Condition, wanted: frozenset[int], seen: PartitionView | None) -> bool:
    """Return whether a partition is as a condition says."""
    if seen is None:
        return False
    if condition.leader_epoch is not None:
        return seen.leader_epoch >= condition.leader_epoch
    return wanted == ({seen.leader} if condition.leader else set(seen.isr))
