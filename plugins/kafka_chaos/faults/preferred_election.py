"""Makes a follower in the ISR the preferred leader and elects it. Heals by electing the old leader again.

Confirmed by: it leads in a later epoch, and the old leader is in the ISR.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.administration import (
    ask_for_election,
    ask_for_replicas,
    late,
    named,
    partition_now,
    replicas_are,
)
from harness.contracts.faults import (
    ASSIGNMENT,
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
)
from harness.contracts.parameters import Strict
from harness.contracts.targets import Role, Target, partition_of_role
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until
from harness.values import TopicPartition
from harness.zookeeper.view import PartitionView


class Parameters(Strict):
    """Parameters of an election."""

    done_timeout_s: Annotated[float, Field(gt=0, le=100, description="Deadline for each change of order or leader")] = (
        30.0
    )


class PreferredElection(Fault):
    """Elects the next replica in the ISR, and then the old leader again."""

    name: ClassVar[str] = "preferred-election"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    zookeeper: ClassVar[bool] = True
    may_overlap: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.LEADER, Role.COORDINATOR, Role.TRANSACTION_COORDINATOR)
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
        """Choose the new leader: the first of the ISR that does not lead."""
        partition = await partition_of_role(target, context.view)
        before = await partition_now(context, partition)
        successors = [replica for replica in before.assignment if replica in before.isr and replica != before.leader]
        if not successors:
            raise ClusterError(f"the ISR of {named(partition)} has no member but its leader: nothing was injected")
        return Injection(
            fault=self.name,
            targets=tuple(sorted({before.leader, successors[0]})),
            parameters=parameters.model_dump(mode="json"),
            state={
                "partition": list(partition),
                "preferred": before.assignment[0],
                "epoch": before.leader_epoch,
                "leader": before.leader,
                "successor": successors[0],
            },
        )

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Put the successor first, and ask for the election."""
        await self._elect(context, injection, injection.state["successor"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that the successor leads in a later epoch, with the old leader still in the ISR."""
        partition, successor = _partition(injection), injection.state["successor"]
        try:
            seen = await self._led_by(context, injection, successor)
        except DeadlineError as error:
            return await late(context, injection.targets, error)
        if injection.state["leader"] not in seen.isr:
            return inconclusive(f"{named(partition)} has a new leader, but the old one had left the ISR")
        return confirmed(
            f"broker {successor} leads {named(partition)} in epoch {seen.leader_epoch}, as the preferred replica,"
            f" after broker {injection.state['leader']}, which is in the ISR"
        )

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Restore the earlier preferred leader, if it is still a replica, and elect it."""
        preferred = injection.state["preferred"]
        now = await partition_now(context, _partition(injection))
        if now.assignment[0] != preferred and preferred in now.assignment:
            await self._elect(context, injection, preferred)

    async def _elect(self, context: FaultContext, injection: Injection, first: int) -> None:
        partition, timeout_s = _partition(injection), injection.parameters["done_timeout_s"]
        now = (await partition_now(context, partition)).assignment
        order = [first, *(replica for replica in now if replica != first)]
        await ask_for_replicas(context, partition, order, timeout_s=timeout_s)
        await replicas_are(context, partition, order, timeout_s=timeout_s)
        await ask_for_election(context, partition, timeout_s=timeout_s)

    async def _led_by(self, context: FaultContext, injection: Injection, leader: int) -> PartitionView:
        return await until(
            lambda: partition_now(context, _partition(injection)),
            lambda seen: seen.leader == leader and seen.leader_epoch > injection.state["epoch"],
            what=f"broker {leader} leading {named(_partition(injection))}",
            timeout_s=injection.parameters["done_timeout_s"],
        )


def _partition(injection: Injection) -> TopicPartition:
    topic, number = injection.state["partition"]
    return topic, number


PLUGIN: type[Fault] = PreferredElection
