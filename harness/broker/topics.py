"""Checks a new topic, and places its partitions. Pure: Kafka's rules, no ZooKeeper.

The rules are those of Kafka's `AdminManager`, `AdminZkClient` and `AdminUtils`, in their order, as a request that
breaks two rules is answered with the first.
"""

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from types import MappingProxyType

from harness.broker.configs.config_types import ConfigError
from harness.broker.configs.topic_properties import parse_topic_config
from harness.broker.wire.error_codes import ErrorCode
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
MAX_NAME_LENGTH = 249
MAX_PARTITIONS = 10_000
"""In one request, as in Kafka's KRaft controller: placing two thousand million would take all memory."""
UNSET = -1
"""In a request: the numbers of partitions and replicas are the broker's own properties (KIP-464)."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")

Placement = dict[int, list[int]]
"""Partition → broker ids; the first is the preferred leader."""


class TopicRefused(Exception):
    """The topic may not be created; has the error code and message of the answer."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    """A topic in a request."""

    name: str
    partitions: int = UNSET
    replication_factor: int = UNSET
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Manual placement; empty for the broker to choose."""
    config: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic that passed every rule."""

    name: str
    assignment: Placement
    config: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlanner:
    """What the rules need of the cluster."""

    alive_brokers: Sequence[int]
    """Ascending."""
    racks: Mapping[int, str] = field(default_factory=dict)
    """Of the brokers that have one."""
    default_partitions: int
    default_replication_factor: int
    topics: frozenset[str]
    """Names in use."""

    def plan(self, request: TopicRequest, rng: random.Random) -> NewTopic:
        """Return the topic with every partition placed.

        Raises:
            TopicRefused: the first rule that the request breaks.
        """
        if request.name in self.topics:
            raise TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{request.name}' already exists.")
        config = _config(request)
        assignment = self._assignment(request, rng)
        check_name(request.name)
        check_collision(request.name, self.topics)
        check_assignment(assignment)
        try:
            parse_topic_config(config)
        except ConfigError as error:
            raise TopicRefused(ErrorCode.INVALID_CONFIG, str(error)) from None
        return NewTopic(name=request.name, assignment=assignment, config=config)

    def _assignment(self, request: TopicRequest, rng: random.Random) -> Placement:
        if not request.assignment:
            partitions = self.default_partitions if request.partitions == UNSET else request.partitions
            factor = (
                self.default_replication_factor if request.replication_factor == UNSET else request.replication_factor
            )
            start, shift = (rng.randrange(max(len(self.alive_brokers), 1)) for _ in range(2))
            return place(self.alive_brokers, partitions, factor, start=start, shift=shift, racks=self.racks)
        if request.partitions != UNSET or request.replication_factor != UNSET:
            raise TopicRefused(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )
        return {partition: list(replicas) for partition, replicas in sorted(request.assignment.items())}


def _config(request: TopicRequest) -> dict[str, str]:
    config = {}
    for name, value in request.config.items():
        if value is None:
            raise TopicRefused(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        config[name] = value
    return config


def place(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
    racks: Mapping[int, str] = MappingProxyType({}),
) -> Placement:
    """Return Kafka's placement: leaders round robin from the broker at `start`, followers shifted.

    If brokers have a `broker.rack`, neighbours are of different racks, and no rack gets a second replica of a partition
    while another has none (KIP-36).

    Raises:
        TopicRefused: no partitions, no replicas, more replicas than brokers, or a rack that only some brokers have.
    """
    if partitions < 1:
        raise TopicRefused(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if partitions > MAX_PARTITIONS:
        raise TopicRefused(
            ErrorCode.INVALID_PARTITIONS, f"Number of partitions: {partitions} larger than allowed: {MAX_PARTITIONS}."
        )
    if replication_factor < 1:
        raise TopicRefused(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    count = len(brokers)
    if replication_factor > count:
        raise TopicRefused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {count}.",
        )
    known = {broker: racks[broker] for broker in brokers if broker in racks}
    if known and len(known) < count:
        problem = "Not all brokers have rack information for replica rack aware assignment."
        raise TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
    arranged = _by_turns(known) if known else brokers
    rack_of: Mapping[int, str | int] = known or {broker: broker for broker in brokers}
    steps = len(set(known.values())) if known else 1
    assignment: Placement = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        replicas = [arranged[first]]
        step = shift * steps
        while len(replicas) < replication_factor:
            candidate = arranged[(first + 1 + step % (count - 1)) % count]
            step += 1
            if candidate not in replicas and _is_in_turn(candidate, replicas, rack_of):
                replicas.append(candidate)
        assignment[partition] = replicas
    return assignment


def _by_turns(racks: Mapping[int, str]) -> list[int]:
    """Return the brokers so that racks alternate, in the order of their names."""
    members = [[broker for broker in sorted(racks) if racks[broker] == rack] for rack in sorted(set(racks.values()))]
    return [broker for turn in zip_longest(*members) for broker in turn if broker is not None]


def _is_in_turn(candidate: int, replicas: Sequence[int], rack_of: Mapping[int, str | int]) -> bool:
    """Whether the candidate's rack has no replica yet, or every rack has one."""
    used = {rack_of[replica] for replica in replicas}
    return rack_of[candidate] not in used or used == set(rack_of.values())


def check_name(name: str) -> None:
    """Raise TopicRefused when a topic may not have this name."""
    if not name:
        problem = "the empty string is not allowed"
    elif name in {".", ".."}:
        problem = "'.' or '..' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL_NAME.fullmatch(name):
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def check_collision(name: str, topics: Collection[str]) -> None:
    """Raise TopicRefused when the name differs from a topic's only by '.' and '_' (they collide in metric names)."""
    if "." not in name and "_" not in name:
        return
    collisions = sorted(topic for topic in topics if topic.replace(".", "_") == name.replace(".", "_"))
    if collisions:
        raise TopicRefused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topics: {', '.join(collisions)}",
        )


def check_assignment(assignment: Placement) -> None:
    """Raise TopicRefused when a manual placement is malformed; dead and unknown brokers are allowed."""
    if list(assignment) != list(range(len(assignment))):
        problem = "partitions must be a consecutive sequence from 0"
    elif len({len(replicas) for replicas in assignment.values()}) != 1:
        problem = "all partitions must have the same number of replicas"
    elif not all(assignment.values()):
        problem = "a partition needs a replica"
    elif any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        problem = "a broker may hold a partition only once"
    elif any(broker < 0 for replicas in assignment.values() for broker in replicas):
        problem = "a broker id may not be negative"
    else:
        return
    raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Bad replica assignment: {problem}.")
