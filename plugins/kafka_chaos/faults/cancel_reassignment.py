"""Cancels a reassignment while the broker that gets the new replica is paused (KIP-455). Heals by resuming that broker.

The partition has its old replicas afterwards, in the order that Kafka's controller leaves. The broker is one that has
no replica of the partition and is not the controller; no other fault may hold it.

Confirmed by: the new replica appeared in ZooKeeper and went away again, and the controller's answer.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.broker.wire.error_codes import ErrorCode
from harness.cluster.driver import CanPause
from harness.contracts.administration import ask_controller, ask_for_replicas, named, partition_now, replicas_are
from harness.contracts.faults import (
    ASSIGNMENT,
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed_once,
    inconclusive,
)
from harness.contracts.parameters import Strict
from harness.contracts.targets import Role, Target, partition_of_role
from harness.errors import ClusterError
from harness.system.process_state import ProcessState
from harness.system.waiting import until
from harness.values import TopicPartition

SEEN_TIMEOUT_S = 5.0
"""Deadline for the controller to start a reassignment; the broker is paused for at most twice that time."""


class Parameters(Strict):
    """Parameters of a cancellation."""

    done_timeout_s: Annotated[float, Field(gt=0, le=300, description="Deadline for the cancellation")] = 30.0


class CancelReassignment(Fault):
    """Begins to move a replica to a paused broker, and cancels the move."""

    name: ClassVar[str] = "cancel-reassignment"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    requires: ClassVar[tuple[str, ...]] = ("ask", "pause")
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
        """Choose a live broker without a replica as the new one; not the controller, which must answer."""
        partition = await partition_of_role(target, context.view)
        before = (await partition_now(context, partition)).assignment
        busy = {*before, (await context.view.controller()).broker_id}
        free = sorted(set(await context.view.registrations()) - busy)
        if not free:
            raise ClusterError(f"every live broker has a replica of {named(partition)}, or is controller")
        if brokers[0] not in before:
            raise ClusterError(f"broker {brokers[0]} has no replica of {named(partition)} any more")
        after = [free[0] if replica == brokers[0] else replica for replica in before]
        return Injection(
            fault=self.name,
            targets=(free[0],),
            parameters=parameters.model_dump(mode="json"),
            state={"partition": list(partition), "before": list(before), "after": after},
        )

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Ask for the move, wait until it has begun, and cancel it."""
        assert isinstance(context.driver, CanPause)
        partition, (newcomer,) = _partition(injection), injection.targets
        await context.driver.pause_broker(newcomer, at_most_s=2 * SEEN_TIMEOUT_S)
        after = injection.state["after"]
        await ask_for_replicas(context, partition, after, timeout_s=injection.parameters["done_timeout_s"])
        under_way = await until(
            lambda: partition_now(context, partition),
            lambda seen: newcomer in seen.assignment,
            what=f"{named(partition)} on its way to {after}",
            timeout_s=SEEN_TIMEOUT_S,
        )
        return injection.with_state(
            under_way=list(under_way.assignment), answer=await _cancelled(context, partition), isr=list(under_way.isr)
        )

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """See the controller's answer, and the old replicas and no others."""
        state, partition = injection.state, _partition(injection)
        if state["answer"] != ErrorCode.NONE or injection.targets[0] in state["isr"]:
            return inconclusive(f"{named(partition)} had moved, or had nothing to cancel: error {state['answer']}")
        detail = f"{named(partition)} was on its way to {state['after']}, and is on {state['before']} again"
        return await confirmed_once(_on_its_own(context, injection), detail)

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Resume the broker, cancel what has begun, and restore the old replicas in their order."""
        assert isinstance(context.driver, CanPause)
        if (await context.driver.status()).broker(injection.targets[0]).state == ProcessState.PAUSED:
            await context.driver.resume_broker(injection.targets[0])
        partition, before = _partition(injection), injection.state["before"]
        timeout_s = injection.parameters["done_timeout_s"]
        if set((await partition_now(context, partition)).assignment) != set(before):
            await _cancelled(context, partition)
        if (await partition_now(context, partition)).assignment != tuple(before):
            await ask_for_replicas(context, partition, before, timeout_s=timeout_s)
            await replicas_are(context, partition, before, timeout_s=timeout_s)


async def _on_its_own(context: FaultContext, injection: Injection) -> None:
    """Wait until the partition has its old replicas, and no reassignment is pending; raises DeadlineError."""
    before = set(injection.state["before"])

    async def left() -> list[str]:
        seen = (await partition_now(context, _partition(injection))).assignment
        wrong = [f"replicas {list(seen)}"] if set(seen) != before else []
        return wrong + (["a requested reassignment"] if await context.view.reassigning() else [])

    await until(
        left,
        lambda seen: not seen,
        what=f"the end of the reassignment of {named(_partition(injection))}",
        timeout_s=injection.parameters["done_timeout_s"],
    )


async def _cancelled(context: FaultContext, partition: TopicPartition) -> int:
    """Ask the controller to cancel a partition's reassignment; return its error code."""
    from harness.broker.wire.messages import AlterPartitionReassignmentsRequest

    topic, number = partition
    wish = AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition(
        partition_index=number, replicas=None
    )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=5000,
        topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[wish])],
    )
    answer = await ask_controller(context, request, 0)
    each = [error.error_code for topics in answer.responses for error in topics.partitions]
    return int(answer.error_code or each[0])


def _partition(injection: Injection) -> TopicPartition:
    topic, number = injection.state["partition"]
    return topic, number


PLUGIN: type[Fault] = CancelReassignment
