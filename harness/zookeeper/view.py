"""What does ZooKeeper hold about the cluster now: controller, registrations, leaders, ISRs?"""

import json
from typing import Protocol

from harness.values import value_class


@value_class(frozen=True, slots=True, kw_only=True)
class Controller:
    """The content of `/controller` and `/controller_epoch`."""

    broker_id: int
    """-1 when there is none."""
    controller_epoch: int
    session: str
    """In hexadecimal; empty when there is none."""


@value_class(frozen=True, slots=True, kw_only=True)
class Registration:
    """One child of `/brokers/ids`."""

    broker_id: int
    czxid: int
    session: str
    """The ephemeral owner, in hexadecimal."""


@value_class(frozen=True, slots=True, kw_only=True)
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
    """Reads the cluster's state and writes as an administrator; `ClusterError` when ZooKeeper does not answer."""

    async def controller(self) -> Controller:
        """Return the controller and its epoch."""
        ...

    async def registrations(self) -> dict[int, Registration]:
        """Return the live brokers by id."""
        ...

    async def partitions(self) -> list[PartitionView]:
        """Return every partition that has a state znode, by topic and partition."""
        ...

    async def expire(self, session: str) -> None:
        """End another client's session, given in hexadecimal: take it over by id and password, and close it."""
        ...

    async def exists(self, path: str) -> bool:
        """Return whether a znode exists."""
        ...

    async def read(self, path: str) -> bytes | None:
        """Return what a znode holds; None when there is none."""
        ...

    async def create(self, path: str, data: bytes) -> bool:
        """Create a persistent znode below an existing one; return False when it exists already."""
        ...

    async def write(self, path: str, data: bytes, *, instead_of: bytes | None = None) -> bool:
        """Replace what a znode holds, whoever owns it; return False when there is none.

        With `instead_of` that is to be replaced and nothing else; False when it has changed.
        """
        ...

    async def delete(self, path: str) -> bool:
        """Delete a znode without children; return False when there is none."""
        ...


def controller_view(epoch: bytes | None, controller: tuple[bytes, str] | None) -> Controller:
    """Return the content of `/controller_epoch`, and of `/controller` with its owner's session; None where absent."""
    controller_epoch = 0 if epoch is None else int(epoch)
    if controller is None:
        return Controller(broker_id=-1, controller_epoch=controller_epoch, session="")
    data, session = controller
    try:
        broker_id = json.loads(data)["brokerid"]
    except ValueError:
        broker_id = -1  # somebody wrote nonsense there
    return Controller(broker_id=broker_id, controller_epoch=controller_epoch, session=session)


def assignment_of(topic_znode: bytes) -> list[tuple[int, tuple[int, ...]]]:
    """Return partition and replicas out of a topic's znode."""
    partitions = json.loads(topic_znode)["partitions"]
    return [(int(partition), tuple(replicas)) for partition, replicas in partitions.items()]


def partition_view(
    topic: str, partition: int, assignment: tuple[int, ...], state_znode: bytes, zk_version: int
) -> PartitionView:
    """Return the content of a partition's state znode."""
    state = json.loads(state_znode)
    return PartitionView(
        topic=topic,
        partition=partition,
        assignment=assignment,
        leader=state["leader"],
        leader_epoch=state["leader_epoch"],
        isr=tuple(state["isr"]),
        controller_epoch=state["controller_epoch"],
        zk_version=zk_version,
    )
