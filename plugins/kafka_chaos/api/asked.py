"""What callers of the Python API ask for, checked before any of it happens."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from harness.cluster.capabilities import Side
from harness.contracts import registry
from harness.contracts.parameters import Strict
from harness.contracts.targets import NO_BROKERS, Target, parse_target, resolve
from harness.errors import ClusterError, ScenarioError
from harness.scenario.errors import problems_of
from harness.scenario.model import Properties, TopicSpec
from harness.zookeeper.view import ClusterView

__all__ = ["Wanted", "assignment_of", "checked", "member", "sides_of", "target_of"]

Model = TypeVar("Model", bound=BaseModel)
Choice = TypeVar("Choice", bound=StrEnum)
Names = Annotated[Sequence[str], Field(description="Names in a list")]


class Wanted(Strict):
    """What a cluster is started with."""

    properties: Annotated[Properties, Field(description="Properties of every broker")]
    planted_bugs: Names
    needs: Names


def checked(model: type[Model], values: Mapping[str, Any], what: str) -> Model:
    """Return values as a model has them.

    Raises:
        ScenarioError: it refuses some; the message begins with `what`, and has a sentence for each.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        sentences = [
            ": ".join((".".join(map(str, each.path)), each.message)) for each in problems_of(model, error) if each.path
        ]
        raise ScenarioError(f"{what}: {'; '.join(sentences) or error}") from None


def assignment_of(name: str, partitions: int, replication_factor: int, brokers: Sequence[int]) -> dict[int, list[int]]:
    """Return the replicas of each partition of a new topic, the preferred leader first; leaders take turns.

    Raises:
        ScenarioError: Kafka has no such topics.
        ClusterError: more replicas are asked for than there are brokers.
    """
    values = {"name": name, "partitions": partitions, "replication_factor": replication_factor}
    topic = checked(TopicSpec, values, f"the topic {name!r}")
    if topic.replication_factor > len(brokers):
        raise ClusterError(f"{topic.replication_factor} replicas do not fit on {len(brokers)} brokers")
    ids, starts = [*brokers, *brokers], [partition % len(brokers) for partition in range(topic.partitions)]
    return {partition: ids[start : start + topic.replication_factor] for partition, start in enumerate(starts)}


def member(choices: type[Choice], value: str, what: str) -> Choice:
    """Return the member of that value; ScenarioError names those that there are."""
    try:
        return choices(value)
    except ValueError:
        raise ScenarioError(registry.unknown_message(what, str(value), list(choices))) from None


def sides_of(sides: Sequence[Side] | Side) -> tuple[Side, ...]:
    """Return the sides of a broker's links; one may stand without a list."""
    return tuple(member(Side, side, "side") for side in ([sides] if isinstance(sides, str) else sides))


async def target_of(kind: str, text: str, view: ClusterView, known: Sequence[int]) -> tuple[Target, tuple[int, ...]]:
    """Return a fault's target, and the brokers that have its role now.

    Raises:
        ScenarioError: it is no target, or none of this fault's.
        ClusterError: no broker has the role now, or there is no broker of that id.
    """
    accepts = registry.fault(kind).accepts
    try:
        target = parse_target(text)
        if target.role not in accepts:
            raise ScenarioError(f"{kind} takes {', '.join(accepts)} as its target, not `{text}`")
        if target.role in NO_BROKERS:
            return target, ()
        brokers = await resolve(target, view)
    except ValueError as error:
        raise ScenarioError(f"{kind}: {error}") from None
    if unknown := [broker for broker in brokers if broker not in known]:
        raise ClusterError(f"no broker {unknown[0]}; there are: {', '.join(map(str, known))}")
    if not brokers:
        raise ClusterError(f"{kind}: no broker is `{text}` now")
    return target, brokers
