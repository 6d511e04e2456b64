"""Deletes topics and adds partitions: checks a request and writes it to ZooKeeper, where the controller finds it.

After Kafka's `ZkAdminManager` and `AdminZkClient`, rules in their order.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from harness.broker.metadata_cache import MetadataCache
from harness.broker.topics import Placement, TopicRefused, place
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import BadVersion, NodeExists, ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import read_topic_assignment
from harness.broker.zookeeper.znodes import TopicAssignment, delete_topic_path, topic_path

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MorePartitions:
    """A request for more partitions of a topic."""

    topic: str
    count: int
    """The new number of partitions."""
    assignments: Sequence[Sequence[int]] | None
    """Brokers of each added partition; None for the broker to choose."""


def added_partitions(
    known: Mapping[int, Sequence[int]],
    wanted: MorePartitions,
    alive_brokers: Sequence[int],
    racks: Mapping[int, str] = MappingProxyType({}),
) -> Placement:
    """Return the replicas of the added partitions; pure.

    Raises:
        TopicRefused: the first rule that the request breaks.
    """
    count = len(known)
    if wanted.count < count:
        problem = f"Topic currently has {count} partitions, which is higher than the requested {wanted.count}."
        raise TopicRefused(ErrorCode.INVALID_PARTITIONS, problem)
    if wanted.count == count:
        raise TopicRefused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partitions.")
    first = known.get(0)
    if first is None:
        raise TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"topic '{wanted.topic}' has no partition 0")
    if wanted.assignments is None:
        start = next((index for index, broker in enumerate(alive_brokers) if broker >= first[0]), 0)
        return place(
            alive_brokers,
            wanted.count - count,
            len(first),
            start=start,
            shift=start,
            first_partition=count,
            racks=racks,
        )
    _check_placement(wanted.assignments, wanted.count - count, len(first), alive_brokers)
    return {count + index: list(replicas) for index, replicas in enumerate(wanted.assignments)}


def _check_placement(
    assignments: Sequence[Sequence[int]], added: int, replication_factor: int, alive_brokers: Sequence[int]
) -> None:
    """Raise TopicRefused when a manual placement is not possible; unlike at creation, dead brokers are refused."""
    unknown = sorted({broker for replicas in assignments for broker in replicas} - set(alive_brokers))
    if unknown:
        problem = f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
    elif len(assignments) != added:
        problem = f"Increasing the number of partitions by {added} but {len(assignments)} assignments provided."
    elif not all(assignments):
        problem = "Cannot have replication factor of 0."
    elif any(len(set(replicas)) != len(replicas) for replicas in assignments):
        problem = "Duplicate brokers not allowed in replica assignment."
    elif any(len(replicas) != replication_factor for replicas in assignments):
        problem = f"Inconsistent replication factor between partitions, partition 0 has {replication_factor}."
    else:
        return
    raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


@dataclass(slots=True)
class TopicChanges:
    """Writes checked requests to ZooKeeper."""

    metadata: MetadataCache
    session: ZooKeeperSession

    async def delete(self, name: str) -> None:
        """Request the deletion of a topic; one that is being deleted already is fine.

        Raises:
            TopicRefused: there is no such topic, or ZooKeeper did not take it.
        """
        if not self.metadata.partitions(name):
            raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        zk = self.session.current
        try:
            if await zk.exists(topic_path(name)) is None:
                raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
            await zk.create(delete_topic_path(name), b"")
        except NodeExists:
            _log.info("topic.deletion is on its way already name=%s", name)
        except ZooKeeperError as error:
            raise _not_taken(error) from error
        else:
            _log.info("topic.deletion wanted name=%s", name)

    async def add_partitions(self, wanted: MorePartitions, *, validate_only: bool = False) -> int:
        """Add partitions to a topic, or only check the request, and return the new number of partitions.

        Kafka writes whatever the znode has become since it was read, and so may lose a reassignment that begins
        meanwhile. Here the request is checked again, against what it has become.

        Raises:
            TopicRefused: a rule is broken, or ZooKeeper did not take it.
        """
        zk = self.session.current
        try:
            try:
                await self._grow(zk, wanted, validate_only=validate_only)
            except BadVersion:
                await self._grow(zk, wanted, validate_only=validate_only)
        except ZooKeeperError as error:
            raise _not_taken(error) from error
        return wanted.count

    async def _grow(self, zk: ZooKeeper, wanted: MorePartitions, *, validate_only: bool) -> None:
        """Check a request and write it; raise BadVersion where the znode was written meanwhile."""
        read = await zk.exists(topic_path(wanted.topic))
        known = await read_topic_assignment(zk, wanted.topic)
        if known is None or read is None:
            problem = f"The topic '{wanted.topic}' does not exist."
            raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem)
        if any(known.adding.values()) or any(known.removing.values()):
            problem = f"A partition reassignment is in progress for the topic '{wanted.topic}'."
            raise TopicRefused(ErrorCode.REASSIGNMENT_IN_PROGRESS, problem)
        alive = [broker.broker_id for broker in self.metadata.alive_brokers()]
        added = added_partitions(known.partitions, wanted, alive, self.metadata.racks())
        if not (validate_only and self.metadata.rules.growth_can_be_tried):
            await zk.set(topic_path(wanted.topic), _grown(known, added).encode(), read.version)
            _log.info("topic.grown name=%s added=%s", wanted.topic, added)


def _grown(known: TopicAssignment, added: Placement) -> TopicAssignment:
    more = {number: tuple(replicas) for number, replicas in added.items()}
    return replace(known, partitions={**known.partitions, **more})


def _not_taken(error: ZooKeeperError) -> TopicRefused:
    return TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper did not take it: {error!r}")
