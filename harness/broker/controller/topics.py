"""The active controller's reaction when topics or partitions appear or disappear."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from harness.broker.controller.environment import Environment
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.zookeeper.client import ANY_VERSION, NoNode, Set
from harness.broker.zookeeper.partition_state import read_partition_states
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.topics import read_topic_assignment
from harness.broker.zookeeper.znodes import TOPICS, TopicAssignment, partitions_path, topic_path
from harness.values import TopicPartition

log = logging.getLogger(__name__)


class TopicEvents:
    """Keeps topics and leadership of the context, and acts on every change of them."""

    def __init__(self, environment: Environment, partitions: PartitionMachine, replicas: ReplicaMachine) -> None:
        self._env = environment
        self._context = environment.context
        self._partitions = partitions
        self._replicas = replicas

    def watch(self) -> None:
        """Register for topics that come and go."""
        self._env.session.current.watch_children(TOPICS, self._env.on_watch("TopicChange", self.changed))

    def unwatch(self) -> None:
        """Remove all handlers."""
        zk = self._env.session.current
        zk.unwatch_children(TOPICS)
        for topic in sorted(self._context.topics):
            zk.unwatch_node(topic_path(topic))

    async def load(self) -> None:
        """Read all topics with their assignments."""
        await self._add(await self._env.session.current.children(TOPICS))

    async def load_leadership(self) -> None:
        """Read the leaders of all partitions."""
        partitions = self._context.partitions()
        self._context.leadership = await read_partition_states(self._env.session.current, partitions)

    async def changed(self) -> None:
        """Event TopicChange: start new topics, remove those that are gone."""
        now = await self._env.session.current.children(TOPICS)
        gone = sorted(self._context.topics.keys() - set(now))
        for topic in gone:
            self._context.remove_topic(topic)
            self._env.session.current.unwatch_node(topic_path(topic))
        new = await self._add([topic for topic in now if topic not in self._context.topics])
        log.info("topics.changed new=%s gone=%s", new, gone)
        await self._create([partition for partition in self._context.partitions() if partition[0] in new])

    async def partitions_modified(self, topic: str) -> None:
        """Event PartitionModifications: start the partitions that a topic has gained; not while it is deleted."""
        known = self._context.topics.get(topic)
        now = await read_topic_assignment(self._env.session.current, topic)
        if known is None or now is None:
            return
        added = sorted(now.partitions.keys() - known.partitions.keys())
        if not added:
            return
        if topic in self._context.deleting:
            log.warning("partitions.refused topic=%s partitions=%s reason=being_deleted", topic, added)
            await self._restore(topic, now)
            return
        self._context.topics[topic] = _with_partitions(known, now, added)
        log.info("partitions.added topic=%s partitions=%s", topic, added)
        await self._create([(topic, number) for number in added])

    async def _restore(self, topic: str, written: TopicAssignment) -> None:
        """Write back the assignment of existing partitions."""
        try:
            existing = await self._env.session.current.children(partitions_path(topic))
        except NoNode:
            existing = []
        partitions = {
            number: self._context.replicas((topic, number)) for number in written.partitions if str(number) in existing
        }
        restored = replace(written, partitions=partitions)
        await self._env.writes.write(Set(path=topic_path(topic), data=restored.encode(), version=ANY_VERSION))

    async def _add(self, topics: Sequence[str]) -> list[str]:
        """Watch and read new topics; return those that still exist."""
        zk = self._env.session.current
        for topic in topics:
            modified = partial(self.partitions_modified, topic)
            zk.watch_node(topic_path(topic), self._env.on_watch("PartitionModifications", modified))
        assignments = zip(topics, await all_of(read_topic_assignment(zk, topic) for topic in topics), strict=True)
        added = {topic: assignment for topic, assignment in assignments if assignment is not None}
        self._context.topics |= added
        return sorted(added)

    async def _create(self, partitions: Sequence[TopicPartition]) -> None:
        """Start new partitions (`onNewPartitionCreation`)."""
        replicas = self._context.replicas_of(partitions)
        await self._partitions.change(partitions, PartitionStatus.NEW)
        await self._replicas.change(replicas, ReplicaStatus.NEW)
        await self._partitions.change(partitions, PartitionStatus.ONLINE, trigger="new_partition")
        await self._replicas.change(replicas, ReplicaStatus.ONLINE)


def _with_partitions(known: TopicAssignment, now: TopicAssignment, added: Sequence[int]) -> TopicAssignment:
    """Return the known assignment, with added partitions as ZooKeeper has them now."""

    def gained(
        before: Mapping[int, tuple[int, ...]], after: Mapping[int, tuple[int, ...]]
    ) -> dict[int, tuple[int, ...]]:
        return {**before, **{number: after[number] for number in added if number in after}}

    return replace(
        known,
        partitions=gained(known.partitions, now.partitions),
        adding=gained(known.adding, now.adding),
        removing=gained(known.removing, now.removing),
    )
