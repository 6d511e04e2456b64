"""Whom a fault hits: the target expressions of a scenario, parsed, and resolved into broker ids.

Explicit ids and `one` are known when the plan is made; roles (`leader`, `followers`, `controller`) only at the moment
of injection, from ZooKeeper.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from harness.zookeeper.view import ClusterView

NOBODY = -1

ALLOWED = "leader(topic,partition), followers(topic,partition), controller, one, or broker ids such as 1,2"

_ROLE = re.compile(r"(?P<role>leader|followers)\(\s*(?P<topic>[a-zA-Z0-9._-]+)\s*,\s*(?P<partition>\d{1,9})\s*\)")
_IDS = re.compile(r"\d{1,9}(\s*,\s*\d{1,9})*")


class Role(StrEnum):
    """What an expression names."""

    LEADER = "leader"
    FOLLOWERS = "followers"
    CONTROLLER = "controller"
    ONE = "one"
    IDS = "ids"


ROLES_OF_A_PARTITION = frozenset({Role.LEADER, Role.FOLLOWERS})
EVERY_ROLE = tuple(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One parsed expression."""

    role: Role
    topic: str = ""
    """Of a leader or its followers; empty otherwise."""
    partition: int = -1
    broker_ids: tuple[int, ...] = ()
    """Of explicit ids; empty otherwise."""

    def __str__(self) -> str:
        if self.role in ROLES_OF_A_PARTITION:
            return f"{self.role}({self.topic},{self.partition})"
        return ",".join(map(str, self.broker_ids)) if self.role is Role.IDS else str(self.role)

    @property
    def described(self) -> str:
        """The role as a part of a sentence, e.g. leader of orders-0; empty for ids."""
        if self.role in ROLES_OF_A_PARTITION:
            return f"{self.role} of {self.topic}-{self.partition}"
        return "" if self.role is Role.IDS else str(self.role)


def parse_target(text: str) -> Target:
    """Return what the expression means.

    Raises:
        ValueError: it is none of the allowed forms.
    """
    text = text.strip()
    if match := _ROLE.fullmatch(text):
        return Target(role=Role(match["role"]), topic=match["topic"], partition=int(match["partition"]))
    if text in (Role.CONTROLLER, Role.ONE):
        return Target(role=Role(text))
    if _IDS.fullmatch(text):
        ids = [int(part) for part in text.split(",")]
        if len(set(ids)) < len(ids):
            raise ValueError(f"names a broker twice: {text}")
        return Target(role=Role.IDS, broker_ids=tuple(ids))
    raise ValueError(f"not a target: {text!r}; allowed: {ALLOWED}")


async def resolve(target: Target, view: ClusterView) -> tuple[int, ...]:
    """Return the brokers that have the role now, in ascending order; empty when nobody has it.

    Raises:
        ClusterError: ZooKeeper does not answer.
        ValueError: `one` was not drawn when the plan was made.
    """
    match target.role:
        case Role.IDS:
            return target.broker_ids
        case Role.CONTROLLER:
            found = [(await view.controller()).broker_id]
        case Role.LEADER | Role.FOLLOWERS:
            found = await _replicas(target, view)
        case Role.ONE:
            raise ValueError("the target `one` is drawn when the plan is made, not at injection")
    return tuple(sorted(broker_id for broker_id in found if broker_id != NOBODY))


async def _replicas(target: Target, view: ClusterView) -> list[int]:
    for partition in await view.partitions():
        if (partition.topic, partition.partition) == (target.topic, target.partition):
            if target.role is Role.LEADER:
                return [partition.leader]
            return [broker_id for broker_id in partition.assignment if broker_id != partition.leader]
    return []
