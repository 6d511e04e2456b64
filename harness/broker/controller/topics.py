"""What the active controller does when topics or partitions appear, and when a leader has changed an ISR."""

import logging
from collections.abc import Sequence
from functools import partial

from harness.broker.controller.context import TopicPartition
from harness.broker.controller.environment import Environment
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.zookeeper.client import Delete, NoNode
from harness.broker.zookeeper.partition_state import read_partition_states
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.topics import read_topic_assignment
from harness.broker.zookeeper.znodes import (
    ISR_CHANGES,
    TOPICS,
    MalformedZnode,
    TopicAssignment,
    decode_isr_change,
    isr_change_path,
    topic_path,
)

log = logging.getLogger(__name__)


class TopicEvents:
    """Keeps topics and leadership of the context, and acts on every change of them."""

    def __init__(self, environment: Environment, partitions: PartitionMachine, replicas: ReplicaMachine) -> None:
        self._env = environment
        self._context = environment.context
        self._partitions = partitions
        self._replicas = replicas

    def watch(self) -> None:
        """Register for topics that come and go, and for news of ISRs."""
        zk = self._env.session.current
        zk.watch_children(TOPICS, self._env.on_watch("TopicChange", self.changed))
        zk.watch_children(ISR_CHANGES, self._env.on_watch("IsrChangeNotification", self.isr_changed))

    def unwatch(self) -> None:
        """Forget all handlers."""
        zk = self._env.session.current
        zk.unwatch_children(ISR_CHANGES)
        zk.unwatch_children(TOPICS)
        for topic in sorted(self._context.topics):
            zk.unwatch_node(topic_path(topic))

    async def load(self) -> None:
        """Read all topics with their assignments."""
        await self._add(await self._env.session.current.children(TOPICS))

    async def load_leadership(self) -> None:
        """Read who leads what."""
        partitions = self._context.partitions()
        self._context.leadership = await read_partition_states(self._env.session.current, partitions)

    async def drop_isr_changes(self) -> None:
        """Delete notifications meant for the controller before; what they tell is read anyway."""
        await self._delete_isr_changes(await self._env.session.current.children(ISR_CHANGES))

    async def changed(self) -> None:
        """Event TopicChange: bring new topics up, forget those that are gone."""
        now = await self._env.session.current.children(TOPICS)
        gone = sorted(self._context.topics.keys() - set(now))
        for topic in gone:
            self._context.remove_topic(topic)
            self._env.session.current.unwatch_node(topic_path(topic))
        new = await self._add([topic for topic in now if topic not in self._context.topics])
        log.info("topics.changed new=%s gone=%s", new, gone)
        await self._create([partition for partition in self._context.partitions() if partition[0] in new])

    async def partitions_modified(self, topic: str) -> None:
        """Event PartitionModifications: bring up the partitions that a topic has gained."""
        known = self._context.topics.get(topic)
        now = await read_topic_assignment(self._env.session.current, topic)
        if known is None or now is None:
            return
        added = {number: replicas for number, replicas in now.partitions.items() if number not in known.partitions}
        partitions = {**known.partitions, **added}
        self._context.topics[topic] = TopicAssignment(partitions=partitions, topic_id=now.topic_id)
        log.info("partitions.added topic=%s partitions=%s", topic, sorted(added))
        await self._create([(topic, number) for number in sorted(added)])

    async def isr_changed(self) -> None:
        """Event IsrChangeNotification: read the ISRs that leaders have changed, and tell everybody."""
        zk = self._env.session.current
        names = await zk.children(ISR_CHANGES)
        named = await all_of(self._read_isr_change(name) for name in names)
        partitions = sorted({partition for partitions in named for partition in partitions})
        known = [partition for partition in partitions if partition in self._context.partition_status]
        if known:
            self._context.leadership |= await read_partition_states(zk, known)
            self._env.tell_metadata(self._context.live_or_shutting_down, known)
        await self._delete_isr_changes(names)

    async def _read_isr_change(self, name: str) -> list[TopicPartition]:
        path = isr_change_path(name)
        try:
            data, _ = await self._env.session.current.get(path)
            return decode_isr_change(path, data)
        except NoNode:
            return []
        except MalformedZnode as error:
            log.error("isr_change.ignored error=%s", error)
            return []

    async def _delete_isr_changes(self, names: Sequence[str]) -> None:
        await self._env.writes.write_all([Delete(path=isr_change_path(name)) for name in names])

    async def _add(self, topics: Sequence[str]) -> list[str]:
        """Watch and read new topics; return those that are still there."""
        zk = self._env.session.current
        for topic in topics:
            modified = partial(self.partitions_modified, topic)
            zk.watch_node(topic_path(topic), self._env.on_watch("PartitionModifications", modified))
        found = await all_of(read_topic_assignment(zk, topic) for topic in topics)
        added = {topic: assignment for topic, assignment in zip(topics, found, strict=True) if assignment is not None}
        self._context.topics |= added
        return sorted(added)

    async def _create(self, partitions: Sequence[TopicPartition]) -> None:
        """Bring new partitions up (`onNewPartitionCreation`)."""
        replicas = self._context.replicas_of(partitions)
        await self._partitions.change(partitions, PartitionStatus.NEW)
        await self._replicas.change(replicas, ReplicaStatus.NEW)
        await self._partitions.change(partitions, PartitionStatus.ONLINE, trigger="new_partition")
        await self._replicas.change(replicas, ReplicaStatus.ONLINE)
