"""What ZooKeeper says about the cluster right now: controller, registrations, leaders, ISRs."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """The content of `/controller` and `/controller_epoch`."""

    broker_id: int
    """-1 when there is none."""
    controller_epoch: int
    session: str
    """In hexadecimal; empty when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One child of `/brokers/ids`."""

    broker_id: int
    czxid: int
    session: str
    """The ephemeral owner, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition's state znode with its assignment."""

    topic: str
    partition: int
    assignment: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zk_version: int


class ClusterView(Protocol):
    """Reads; raises `ClusterError` when ZooKeeper does not answer."""

    async def controller(self) -> Controller:
        """Return who is controller."""
        ...

    async def registrations(self) -> dict[int, Registration]:
        """Return the live brokers by id."""
        ...

    async def partitions(self) -> list[PartitionView]:
        """Return every partition that has a state znode, by topic and partition."""
        ...

    async def expire(self, session: str) -> None:
        """End a session of somebody else: take it over by its id and computed password, and close it."""
        ...
