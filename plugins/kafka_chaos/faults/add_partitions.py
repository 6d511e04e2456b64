"""Adds partitions to a topic for good; their leaders are elected at once. Kafka cannot remove partitions.

The topic's znode is changed, as Kafka's tools did until 2.x; without ZooKeeper a request asks for it. The load writes
to none of the new partitions. `without_topic_id` writes what tools before Kafka 2.8 wrote.

Confirmed by: a leader of each new partition in ZooKeeper.
"""

import json
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.contracts.administration import late
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
from harness.contracts.targets import Role, Target
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until
from harness.values import NO_BROKER

VERSION_WITHOUT_TOPIC_ID = 2


class Parameters(Strict):
    """Parameters of added partitions."""

    partitions: Annotated[int, Field(ge=1, le=100, description="How many more")] = 1
    topic: Annotated[str, Field(description="The topic, where the target names none; empty: the target's")] = ""
    without_topic_id: Annotated[
        bool, Field(description="Whether the topic's id is left out, as tools before Kafka 2.8 do")
    ] = False
    done_timeout_s: Annotated[
        float, Field(gt=0, le=300, description="Deadline until all new partitions have leaders")
    ] = 60.0


class AddPartitions(Fault):
    """Adds partitions to the topic of the target, as many replicas each as that partition has."""

    name: ClassVar[str] = "add-partitions"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    zookeeper: ClassVar[bool] = True
    may_overlap: ClassVar[bool] = True
    accepts: ClassVar[tuple[Role, ...]] = (Role.LEADER, Role.FOLLOWERS, Role.IDS)
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
        """Choose live brokers for each of them, starting with another one each time."""
        assert isinstance(parameters, Parameters)
        topic = parameters.topic or target.topic
        assigned = await _assigned(context, topic)
        if not assigned:
            raise ClusterError(f"there is no topic {topic!r} to add partitions to")
        replicas, first = len(assigned[0]), len(assigned)
        live = sorted(await context.view.registrations())
        if len(live) < replicas:
            raise ClusterError(f"{len(live)} brokers live, and partitions of {topic} have {replicas} replicas")
        added = {
            str(number): [live[(number + replica) % len(live)] for replica in range(replicas)]
            for number in range(first, first + parameters.partitions)
        }
        return Injection(
            fault=self.name,
            targets=tuple(sorted({broker for each in added.values() for broker in each})),
            parameters=parameters.model_dump(mode="json"),
            state={"topic": topic, "added": added},
        )

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Write them into the topic's znode, beside those that are there and replicas that move."""
        path = f"/brokers/topics/{injection.state['topic']}"

        async def written() -> bool:
            data = await context.zookeeper.read(path)
            value = json.loads(data or "{}")
            value["partitions"] = value.get("partitions", {}) | injection.state["added"]
            if injection.parameters["without_topic_id"] and value.pop("topic_id", None):
                value["version"] = VERSION_WITHOUT_TOPIC_ID
            content = json.dumps(value, separators=(",", ":")).encode()
            return await context.zookeeper.write(path, content, instead_of=data)

        await until(written, bool, what=f"{path} written", timeout_s=injection.parameters["done_timeout_s"])
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """See a leader of each of them."""
        topic, added = injection.state["topic"], injection.state["added"]

        async def without_leader() -> list[int]:
            leaders = {seen.partition: seen.leader for seen in await context.view.partitions() if seen.topic == topic}
            return [int(number) for number in added if leaders.get(int(number), NO_BROKER) == NO_BROKER]

        try:
            await until(
                without_leader,
                lambda seen: not seen,
                what=f"leaders of what {topic} got",
                timeout_s=injection.parameters["done_timeout_s"],
            )
        except DeadlineError as error:
            return await late(context, injection.targets, error)
        return confirmed(f"{topic} has {len(added)} more: partitions {', '.join(added)} have leaders")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Nothing to undo: Kafka cannot remove partitions."""


async def _assigned(context: FaultContext, topic: str) -> list[list[int]]:
    """Return the replicas of each of a topic's partitions, with leaders or without; none without the topic."""
    data = await context.zookeeper.read(f"/brokers/topics/{topic}")
    partitions = {} if data is None else json.loads(data)["partitions"]
    return [partitions[number] for number in sorted(partitions, key=int)]


PLUGIN: type[Fault] = AddPartitions
