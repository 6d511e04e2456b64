"""Moves a replica to a live broker without one, or removes it where all brokers have one. Heals by moving it back.

With `coordinator(group)` the group's partition of `__consumer_offsets` moves, and the group with it.

Confirmed by: the partition's replicas in ZooKeeper.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.administration import ask_for_replicas, late, named, partition_now, replicas_are
from harness.contracts.faults import (
    ASSIGNMENT,
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
)
from harness.contracts.parameters import Strict
from harness.contracts.targets import Role, Target, partition_of_role
from harness.errors import ClusterError, DeadlineError
from harness.values import TopicPartition


class Parameters(Strict):
    """Parameters of a reassignment."""

    done_timeout_s: Annotated[
        float, Field(gt=0, le=300, description="Deadline for a reassignment: its new replicas copy everything")
    ] = 60.0


class Reassign(Fault):
    """Moves the target's replica of its partition to a live broker that has none, if there is one."""

    name: ClassVar[str] = "reassign"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    may_overlap: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.LEADER, Role.FOLLOWERS, Role.COORDINATOR, Role.TRANSACTION_COORDINATOR)
    exclusive_resources: ClassVar[frozenset[str]] = frozenset({ASSIGNMENT})
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Choose where the replica goes."""
        topic, partition = await partition_of_role(target, context.view)
        before = (await partition_now(context, (topic, partition))).assignment
        free = sorted(set(await context.view.registrations()) - set(before))
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

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Request the move, after any pending one."""
        await self._ask(context, injection, injection.state["after"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that the partition has exactly the new replicas."""
        before, after = injection.state["before"], injection.state["after"]
        try:
            await self._done(context, injection, after)
        except DeadlineError as error:
            return await late(context, after, error)
        return confirmed(f"{named(_partition(injection))} moved from {before} to {after}")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Move it back, and wait until it is there."""
        before = injection.state["before"]
        seen = (await partition_now(context, _partition(injection))).assignment
        if seen == tuple(before) and not await context.view.reassigning():
            return
        await self._ask(context, injection, before)
        await self._done(context, injection, before)

    async def _ask(self, context: FaultContext, injection: Injection, replicas: list[int]) -> None:
        timeout_s = injection.parameters["done_timeout_s"]
        await ask_for_replicas(context, _partition(injection), replicas, timeout_s=timeout_s)

    async def _done(self, context: FaultContext, injection: Injection, replicas: list[int]) -> None:
        timeout_s = injection.parameters["done_timeout_s"]
        await replicas_are(context, _partition(injection), replicas, timeout_s=timeout_s)


def _partition(injection: Injection) -> TopicPartition:
    return injection.state["topic"], injection.state["partition"]


PLUGIN: type[Fault] = Reassign
