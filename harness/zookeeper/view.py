"""The present metadata of the cluster: controller, registrations, leaders, ISRs; and requests to change them.

They are in ZooKeeper, or in the metadata log of a cluster without one. Only the former has `ZookeeperView`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from harness.values import value_class

REASSIGNMENT = "/admin/reassign_partitions"


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
    """Reads the cluster's state and sends requests as an administrator; `ClusterError` when no server answers."""

    async def controller(self) -> Controller:
        """Return the controller and its epoch."""
        ...

    async def registrations(self) -> dict[int, Registration]:
        """Return the live brokers by id."""
        ...

    async def partitions(self) -> list[PartitionView]:
        """Return every partition that has a state, by topic and partition."""
        ...

    async def deleting(self, topic: str) -> bool:
        """Return whether a topic waits for its deletion."""
        ...

    async def remnants(self, topic: str) -> list[str]:
        """Return as text what is left of a topic in the metadata; empty if it is gone."""
        ...

    async def create_topic(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> bool:
        """Create a topic with these replicas by partition; return False if it exists."""
        ...

    async def delete_topic(self, topic: str) -> None:
        """Request the deletion of a topic; no-op if it is gone, or requested already."""
        ...

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> bool:
        """Request other replicas of a partition; return False while an earlier request is pending."""
        ...

    async def reassigning(self) -> bool:
        """Return whether a reassignment has not ended."""
        ...


class OpenableView(ClusterView, Protocol):
    """A view to be opened and closed, of a cluster that may be shared; an async context manager."""

    async def topics(self) -> list[str]:
        """Return the names of all topics."""
        ...

    async def __aenter__(self) -> Self:
        """Open it; raises ClusterError when no server answers that should do so at once."""
        ...

    async def __aexit__(self, *_error: object) -> None:
        """Close it."""
        ...


@runtime_checkable
class HasQuorum(ClusterView, Protocol):
    """A view of a cluster without ZooKeeper."""

    @property
    def voters(self) -> Collection[int]:
        """The ids of the controllers of its quorum."""
        ...


class ZookeeperView(ABC):
    """A `ClusterView` with the capabilities of ZooKeeper; it administers through znodes, as tools did."""

    @abstractmethod
    async def controller(self) -> Controller:
        """Return the controller and its epoch."""

    @abstractmethod
    async def registrations(self) -> dict[int, Registration]:
        """Return the live brokers by id."""

    @abstractmethod
    async def partitions(self) -> list[PartitionView]:
        """Return every partition that has a state znode, by topic and partition."""

    @abstractmethod
    async def expire(self, session: str) -> None:
        """End another client's session, given in hexadecimal: take it over by id and password, and close it."""

    @abstractmethod
    async def exists(self, path: str) -> bool:
        """Return whether a znode exists."""

    @abstractmethod
    async def read(self, path: str) -> bytes | None:
        """Return the content of a znode; None if it does not exist."""

    @abstractmethod
    async def create(self, path: str, data: bytes) -> bool:
        """Create a persistent znode below an existing one; return False when it exists already."""

    @abstractmethod
    async def write(self, path: str, data: bytes, *, instead_of: bytes | None = None) -> bool:
        """Replace the content of a znode, whatever session owns it; return False when it does not exist.

        With `instead_of` only this content is replaced; False if it has changed.
        """

    @abstractmethod
    async def delete(self, path: str) -> bool:
        """Delete a znode without children; return False when there is none."""

    async def deleting(self, topic: str) -> bool:
        """Return whether a topic waits for its deletion."""
        return await self.exists(f"/admin/delete_topics/{topic}")

    async def remnants(self, topic: str) -> list[str]:
        """Return the znodes that are left of a topic."""
        paths = (f"/admin/delete_topics/{topic}", f"/brokers/topics/{topic}", f"/config/topics/{topic}")
        return [path for path in paths if await self.exists(path)]

    async def create_topic(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> bool:
        """Write a topic's assignment, as tools did; return False when there is one already."""
        partitions = {str(number): list(replicas) for number, replicas in assignment.items()}
        await self.create(f"/config/topics/{topic}", b'{"version":1,"config":{}}')
        return await self.create(f"/brokers/topics/{topic}", _json({"version": 1, "partitions": partitions}))

    async def delete_topic(self, topic: str) -> None:
        """Request the deletion of a topic, as tools did."""
        if await self.exists(f"/brokers/topics/{topic}"):
            await self.create(f"/admin/delete_topics/{topic}", b"")

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> bool:
        """Request as tools did until KIP-455; return False while the znode has an earlier request."""
        move = {"topic": topic, "partition": partition, "replicas": list(replicas)}
        return await self.create(REASSIGNMENT, _json({"version": 1, "partitions": [move]}))

    async def reassigning(self) -> bool:
        """Return whether the znode of reassignments exists."""
        return await self.exists(REASSIGNMENT)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def controller_view(epoch: bytes | None, controller: tuple[bytes, str] | None) -> Controller:
    """Return the content of `/controller_epoch`, and of `/controller` with its owner's session; None where absent."""
    controller_epoch = 0 if epoch is None else int(epoch)
    if controller is None:
        return Controller(broker_id=-1, controller_epoch=controller_epoch, session="")
    data, session = controller
    try:
        broker_id = json.loads(data)["brokerid"]
    except ValueError:
        broker_id = -1  # it holds no valid controller
    return Controller(broker_id=broker_id, controller_epoch=controller_epoch, session=session)


def assignment_of(topic_znode: bytes) -> list[tuple[int, tuple[int, ...]]]:
    """Return partition and replicas from a topic's znode."""
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
