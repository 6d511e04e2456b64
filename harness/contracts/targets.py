"""What a fault hits: the target expressions of a scenario, parsed, and resolved into broker ids.

A ZooKeeper server or a client is not a broker: a fault of one gets the target itself.

Explicit ids and what the seed draws (`one`, `minority`, `majority`, `all`, servers of `zookeeper`, controllers of a
`quorum`) are known when the plan is made; roles (`leader`, `followers`, `coordinator`, `controller`) at the moment of
injection, from ZooKeeper or the quorum. ZooKeeper servers themselves say which of them leads or follows.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from harness.kafka.placement import partition_of
from harness.values import NO_BROKER, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from harness.zookeeper.view import ClusterView, HasQuorum

ALLOWED = (
    "leader(topic,partition), followers(topic,partition), coordinator(group),"
    " transaction-coordinator(id), member(group,number), producer(number),"
    " consumer(number), controller, one, minority, majority, all, broker ids such as 1,2, zookeeper (one of its"
    " servers), zookeeper(2) or zookeeper(1,2), zookeeper(leader), zookeeper(follower), zookeeper(majority),"
    " zookeeper(all), quorum (one of its controllers), quorum(leader), quorum(follower), quorum(majority), quorum(all)"
)

_ROLE = re.compile(r"(?P<role>leader|followers)\(\s*(?P<topic>[a-zA-Z0-9._-]+)\s*,\s*(?P<partition>\d{1,9})\s*\)")
_COORDINATOR = re.compile(r"coordinator\(\s*(?P<group>[^\s(),]{1,249})\s*\)")
_TRANSACTION_COORDINATOR = re.compile(r"transaction-coordinator\(\s*(?P<id>[^\s(),]{1,249})\s*\)")
_MEMBER = re.compile(r"member\(\s*(?P<group>[^\s(),]{1,249})\s*,\s*(?P<member>[1-9]\d{0,3})\s*\)")
_CLIENT = re.compile(r"(?P<role>producer|consumer)\(\s*(?P<number>[1-9]\d{0,3})\s*\)")
_SERVER = re.compile(
    r"zookeeper(\(\s*((?P<part>leader|follower|majority|all)|(?P<servers>[1-9]\d{0,2}(\s*,\s*[1-9]\d{0,2})*))\s*\))?"
)
_CONTROLLER = re.compile(r"quorum(\(\s*(?P<part>leader|follower|majority|all)\s*\))?")
_IDS = re.compile(r"\d{1,9}(\s*,\s*\d{1,9})*")


class Role(StrEnum):
    """What an expression selects."""

    LEADER = "leader"
    FOLLOWERS = "followers"
    COORDINATOR = "coordinator"
    TRANSACTION_COORDINATOR = "transaction-coordinator"
    MEMBER = "member"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    """A client that reads every partition, in a group of its own."""
    CONTROLLER = "controller"
    ONE = "one"
    MINORITY = "minority"
    MAJORITY = "majority"
    ALL = "all"
    IDS = "ids"
    ZOOKEEPER = "zookeeper"
    QUORUM = "quorum"
    """Controllers without ZooKeeper: brokers, or servers of their own."""


class Part(StrEnum):
    """Selects ZooKeeper servers, or controllers of a quorum, by their state."""

    LEADER = "leader"
    FOLLOWER = "follower"
    """One follower, the first by number."""
    MAJORITY = "majority"
    """Enough servers that the others have no quorum."""
    ALL = "all"


ROLES_OF_A_PARTITION = frozenset({Role.LEADER, Role.FOLLOWERS})
COORDINATORS = {Role.COORDINATOR: OFFSETS_TOPIC, Role.TRANSACTION_COORDINATOR: TRANSACTIONS_TOPIC}
"""The topic whose partitions decide which broker has the role."""
DRAWN_ROLES = frozenset({Role.ONE, Role.MINORITY, Role.MAJORITY, Role.ALL})
"""Brokers that the seed chooses when the plan is made."""
CLIENTS = frozenset({Role.MEMBER, Role.PRODUCER, Role.CONSUMER})
"""Clients of the load."""
NO_BROKERS = CLIENTS | {Role.ZOOKEEPER}
"""Targets that are not brokers."""
EVERY_ROLE = tuple(role for role in Role if role not in NO_BROKERS)
"""Every role of a broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One parsed expression."""

    role: Role
    topic: str = ""
    """Of a leader or its followers; empty otherwise."""
    partition: int = -1
    broker_ids: tuple[int, ...] = ()
    """Of explicit ids; empty otherwise."""
    group: str = ""
    """The group of the coordinator or member, or the transactional id; empty otherwise."""
    member: int = 0
    """Number of a client, from 1: among the members of its group, or all clients of the load with its role."""
    servers: tuple[int, ...] = ()
    """ZooKeeper servers by number; empty otherwise, for servers that the seed chooses, and for `part`."""
    part: Part | None = None
    """Selects ZooKeeper servers and controllers by their state; None otherwise."""
    text: str = field(default="", compare=False)
    """The expression as it was written; empty if it was not."""

    def __str__(self) -> str:
        if self.role in ROLES_OF_A_PARTITION:
            return f"{self.role}({self.topic},{self.partition})"
        if self.member:
            of_what = f"{self.group},{self.member}" if self.group else self.member
            return f"{self.role}({of_what})"
        if of_what := self.group or self.part or ",".join(map(str, self.servers)):
            return f"{self.role}({of_what})"
        return ",".join(map(str, self.broker_ids)) if self.role is Role.IDS else str(self.role)

    @property
    def described(self) -> str:
        """The role as a part of a sentence, e.g. leader of orders-0; empty for ids."""
        if self.role in ROLES_OF_A_PARTITION:
            return f"{self.role} of {self.topic}-{self.partition}"
        if self.group:
            return f"{self.role} {self.member} of {self.group}" if self.member else f"{self.role} of {self.group}"
        if self.member:
            return f"{self.role} {self.member}"
        if self.role is Role.ZOOKEEPER:
            return f"{self.part} of ZooKeeper" if self.part else "" if self.servers else "a ZooKeeper server"
        if self.role is Role.QUORUM:
            return f"{self.part} of the quorum" if self.part else "a controller"
        return "" if self.role is Role.IDS else str(self.role)


def parse_target(text: str) -> Target:
    """Return the parsed expression.

    Raises:
        ValueError: the expression has none of the allowed forms.
    """
    return replace(_parsed(text.strip()), text=text)


def _parsed(text: str) -> Target:
    if match := _ROLE.fullmatch(text):
        return Target(role=Role(match["role"]), topic=match["topic"], partition=int(match["partition"]))
    if text == Role.CONTROLLER or text in DRAWN_ROLES:
        return Target(role=Role(text))
    if match := _COORDINATOR.fullmatch(text):
        return Target(role=Role.COORDINATOR, group=match["group"])
    if match := _TRANSACTION_COORDINATOR.fullmatch(text):
        return Target(role=Role.TRANSACTION_COORDINATOR, group=match["id"])
    if match := _MEMBER.fullmatch(text):
        return Target(role=Role.MEMBER, group=match["group"], member=int(match["member"]))
    if match := _CLIENT.fullmatch(text):
        return Target(role=Role(match["role"]), member=int(match["number"]))
    if match := _SERVER.fullmatch(text):
        part = Part(match["part"]) if match["part"] else None
        return Target(role=Role.ZOOKEEPER, part=part, servers=_numbers(match["servers"] or "", "a server"))
    if match := _CONTROLLER.fullmatch(text):
        return Target(role=Role.QUORUM, part=Part(match["part"]) if match["part"] else None)
    if _IDS.fullmatch(text):
        return Target(role=Role.IDS, broker_ids=_numbers(text, "a broker"))
    raise ValueError(f"not a target: {text!r}; allowed: {ALLOWED}")


def _numbers(text: str, what: str) -> tuple[int, ...]:
    numbers = tuple(int(number) for number in text.split(",")) if text else ()
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"names {what} twice: {text}")
    return numbers


def drawn(
    target: Target, broker_ids: Sequence[int], servers: int, rng: random.Random, quorum: Sequence[int] = ()
) -> tuple[Target, list[int]]:
    """Return the target with the seed's choices, and the brokers that are known then, in ascending order.

    Args:
        target: From the scenario.
        broker_ids: Of all brokers.
        servers: Number of ZooKeeper servers.
        rng: The seed's.
        quorum: The ids of its controllers, without ZooKeeper.
    """
    match target.role:
        case Role.QUORUM:
            return target, _drawn_controllers(target, quorum, rng)
        case Role.ONE:
            return target, [rng.choice(broker_ids)]
        case Role.MINORITY:
            return target, sorted(rng.sample(broker_ids, (len(broker_ids) - 1) // 2))
        case Role.MAJORITY:
            return target, sorted(rng.sample(broker_ids, len(broker_ids) // 2 + 1))
        case Role.ALL:
            return target, sorted(broker_ids)
        case Role.ZOOKEEPER:
            return replace(target, text="", **_drawn_servers(target, servers, rng)), []
    return target, list(target.broker_ids)


def _drawn_controllers(target: Target, quorum: Sequence[int], rng: random.Random) -> list[int]:
    """Return the controllers of a target that the seed chooses; empty if they are selected by state."""
    match target.part:
        case None:
            return [rng.choice(quorum)]
        case Part.MAJORITY:
            return sorted(rng.sample(quorum, len(quorum) // 2 + 1))
        case Part.ALL:
            return sorted(quorum)
    return []


def _drawn_servers(target: Target, servers: int, rng: random.Random) -> dict[str, Any]:
    """Return the fields of a target with servers that the seed chooses."""
    numbers = range(1, servers + 1)
    match target.part:
        case Part.MAJORITY:
            return {"part": None, "servers": tuple(sorted(rng.sample(numbers, servers // 2 + 1)))}
        case Part.ALL:
            return {"part": None, "servers": tuple(numbers)}
        case None if not target.servers:
            return {"servers": (rng.randint(1, servers),)}
    return {}


async def resolve(target: Target, view: ClusterView) -> tuple[int, ...]:
    """Return the brokers that have the role now, in ascending order; empty when none has it.

    Raises:
        ClusterError: ZooKeeper does not answer.
        ValueError: the seed should have chosen it when the plan was made.
    """
    match target.role:
        case Role.IDS:
            return target.broker_ids
        case Role.CONTROLLER:
            brokers = [(await view.controller()).broker_id]
        case Role.QUORUM if target.part in (Part.LEADER, Part.FOLLOWER):
            leader = (await view.controller()).broker_id
            followers = sorted(set(view.voters) - {leader}) if isinstance(view, HasQuorum) else []
            brokers = [leader] if target.part is Part.LEADER else followers[:1]
        case Role.LEADER | Role.FOLLOWERS:
            brokers = await _replicas(target, view)
        case Role.COORDINATOR | Role.TRANSACTION_COORDINATOR:
            topic, partition = await partition_of_role(target, view)
            brokers = await _replicas(Target(role=Role.LEADER, topic=topic, partition=partition), view)
        case _:
            raise ValueError(f"the target `{target}` is drawn when the plan is made, not at injection")
    return tuple(sorted(broker_id for broker_id in brokers if broker_id != NO_BROKER))


async def partition_of_role(target: Target, view: ClusterView) -> TopicPartition:
    """Return the partition of a target's role: for a coordinator, the partition that holds its group or id.

    Raises:
        ClusterError: ZooKeeper does not answer.
    """
    topic = COORDINATORS.get(target.role)
    if topic is None:
        return target.topic, target.partition
    count = sum(each.topic == topic for each in await view.partitions())
    return topic, partition_of(target.group, count) if count else 0


async def _replicas(target: Target, view: ClusterView) -> list[int]:
    for partition in await view.partitions():
        if (partition.topic, partition.partition) == (target.topic, target.partition):
            if target.role is Role.LEADER:
                return [partition.leader]
            return [broker_id for broker_id in partition.assignment if broker_id != partition.leader]
    return []
