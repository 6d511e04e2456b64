"""Creates a topic of its own on the targets and deletes it as soon as it has leaders, while other topics are written.

The deletion waits for all replicas to be alive. Without ZooKeeper a request asks for it, and the topic is gone at once.

Confirmed by: no trace of the topic in ZooKeeper.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.administration import late
from harness.contracts.faults import Disturbance, Effect, Fault, FaultContext, Injection, confirmed
from harness.contracts.parameters import Strict
from harness.contracts.targets import Target
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until
from harness.values import NO_BROKER
from harness.zookeeper.view import PartitionView

LEGAL = r"^[a-zA-Z0-9._-]{1,249}$"


class Parameters(Strict):
    """Parameters of the created topic."""

    topic: Annotated[str, Field(pattern=LEGAL, description=f"Its name ({LEGAL}), which no other topic has")] = (
        "short-lived"
    )
    partitions: Annotated[
        int, Field(ge=1, le=100, description="Number of partitions, each with a replica on every target")
    ] = 3
    done_timeout_s: Annotated[
        float, Field(gt=0, le=300, description="Deadline for its creation, and again for its deletion")
    ] = 60.0


class DeleteTopic(Fault):
    """Creates a topic on the targets, and asks for its deletion as soon as it has leaders."""

    name: ClassVar[str] = "delete-topic"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    may_overlap: ClassVar[bool] = True
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
        """Check that the name is free."""
        assert isinstance(parameters, Parameters)
        if await context.view.remnants(parameters.topic):
            raise ClusterError(f"there is a topic {parameters.topic} already; this fault deletes only what it creates")
        return Injection(fault=self.name, targets=brokers, parameters=parameters.model_dump())

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Create it, wait for its leaders, and ask for its deletion."""
        topic, brokers = injection.parameters["topic"], injection.targets
        assignment = {
            partition: [*brokers[partition % len(brokers) :], *brokers[: partition % len(brokers)]]
            for partition in range(injection.parameters["partitions"])
        }
        if not await context.view.create_topic(topic, assignment):
            raise ClusterError(f"the topic {topic} was created by another client")
        await until(
            lambda: _partitions(context, topic),
            lambda seen: len(seen) == len(assignment) and all(each.leader != NO_BROKER for each in seen),
            what=f"leaders of all {len(assignment)} partitions of {topic}",
            timeout_s=injection.parameters["done_timeout_s"],
        )
        await context.view.delete_topic(topic)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that nothing of it is left in the metadata."""
        try:
            await self._gone(context, injection)
        except DeadlineError as error:
            return await late(context, injection.targets, error)
        created = f"{injection.parameters['partitions']} partitions on {list(injection.targets)}"
        return confirmed(f"{injection.parameters['topic']}, {created}, came and went")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Request the deletion once more, in case it was not requested, and wait until it is done."""
        await context.view.delete_topic(injection.parameters["topic"])
        await self._gone(context, injection)

    async def _gone(self, context: FaultContext, injection: Injection) -> None:
        topic = injection.parameters["topic"]
        await until(
            lambda: context.view.remnants(topic),
            lambda seen: not seen,
            what=f"the end of topic {topic}",
            timeout_s=injection.parameters["done_timeout_s"],
        )


async def _partitions(context: FaultContext, topic: str) -> list[PartitionView]:
    return [seen for seen in await context.view.partitions() if seen.topic == topic]


PLUGIN: type[Fault] = DeleteTopic
