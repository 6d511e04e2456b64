"""A replica moves to another broker, or away where all have one; healed by moving the partition back.

With a coordinator as target, it is a group's partition of `__consumer_offsets` that moves, and the group with it.

Asked for in `/admin/reassign_partitions`, as tools did until KIP-455: whatever happens to the controller meanwhile, the
next one goes on. A cluster without ZooKeeper is asked by a request.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.faults import Arena, BrokerFault, Effect, Fault, Injection, confirmed
from harness.contracts.parameters import Strict
from harness.contracts.targets import Role, Target, partition_of_role
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until
from harness.verdict import FaultVerdict


class Parameters(Strict):
    """What the scenario may say about a reassignment."""

    done_timeout_s: Annotated[
        float, Field(gt=0, le=300, description="Deadline for a reassignment: its new replicas copy everything")
    ] = 60.0


class Reassign(BrokerFault):
    """Takes the target's replica of its partition away, to a live broker that has none if there is one."""

    name: ClassVar[str] = "reassign"
    composes: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.LEADER, Role.FOLLOWERS, Role.COORDINATOR)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def prepare(
        self, arena: Arena, target: Target, brokers: tuple[int, ...], parameters: BaseModel, *, duration_s: float
    ) -> Injection:
        """Choose where the replica goes."""
        topic, partition = await partition_of_role(target, arena.view)
        before = await _assignment(arena, topic, partition)
        free = sorted(set(await arena.view.registrations()) - set(before))
        leaves = brokers[0]
        if leaves not in before:
            raise ClusterError(f"broker {leaves} has no replica of {topic}-{partition} any more: nothing was injected")
        after = [free[0] if broker == leaves else broker for broker in before if broker != leaves or free]
        if not after:
            raise ClusterError(f"{topic}-{partition} has no other replica, and no other broker is alive")
        return Injection(
            fault=self.name,
            targets=tuple(sorted({leaves, *after})),
            parameters=parameters.model_dump(),
            state={"topic": topic, "partition": partition, "before": list(before), "after": after},
        )

    async def inject(self, arena: Arena, injection: Injection) -> Injection:
        """Ask for it, after whatever else was asked for."""
        await self._ask(arena, injection, injection.state["after"])
        return injection

    async def confirm(self, arena: Arena, injection: Injection) -> Effect:
        """See that the partition has exactly the new replicas."""
        before, after = injection.state["before"], injection.state["after"]
        try:
            await self._done(arena, injection, after)
        except DeadlineError as error:
            missing = sorted(set(after) - set(await arena.view.registrations()))
            verdict = FaultVerdict.INCONCLUSIVE if missing else FaultVerdict.MISMATCH
            return Effect(verdict=verdict, detail=f"{error}; not registered: {missing}" if missing else str(error))
        return confirmed(f"{_name(injection)} moved from {before} to {after}")

    async def heal(self, arena: Arena, injection: Injection) -> None:
        """Move it back, and wait until it is there."""
        state = injection.state
        seen = await _assignment(arena, state["topic"], state["partition"])
        if seen == tuple(state["before"]) and not await arena.view.reassigning():
            return
        await self._ask(arena, injection, injection.state["before"])
        await self._done(arena, injection, injection.state["before"])

    async def _ask(self, arena: Arena, injection: Injection, replicas: list[int]) -> None:
        state = injection.state
        await until(
            lambda: arena.view.reassign(state["topic"], state["partition"], replicas),
            bool,
            what="the end of the reassignment that was asked for before",
            timeout_s=injection.parameters["done_timeout_s"],
        )

    async def _done(self, arena: Arena, injection: Injection, replicas: list[int]) -> None:
        await until(
            lambda: _assignment(arena, injection.state["topic"], injection.state["partition"]),
            lambda seen: seen == tuple(replicas),
            what=f"{_name(injection)} on {replicas}",
            timeout_s=injection.parameters["done_timeout_s"],
        )


async def _assignment(arena: Arena, topic: str, partition: int) -> tuple[int, ...]:
    """Return the partition's replicas, among them those that come or go while it moves; raises ClusterError."""
    for seen in await arena.view.partitions():
        if (seen.topic, seen.partition) == (topic, partition):
            return seen.assignment
    raise ClusterError(f"there is no partition {topic}-{partition}")


def _name(injection: Injection) -> str:
    return f"{injection.state['topic']}-{injection.state['partition']}"


PLUGIN: type[Fault] = Reassign
