"""Deletes topics: asks every broker with a replica, waits for those that cannot, and cleans ZooKeeper up last.

After Kafka's `TopicDeletionManager`. A topic is deleted only when every replica is: one on a dead broker, on a failed
log directory or in a reassignment makes the topic ineligible until that is over, and then all is tried again.
"""

import logging
from collections.abc import Collection, Iterable, Sequence

from harness.broker.controller.context import Replica
from harness.broker.controller.environment import Environment
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import Delete
from harness.broker.zookeeper.topics import znodes_below
from harness.broker.zookeeper.znodes import DELETE_TOPICS, delete_topic_path, topic_config_path, topic_path

log = logging.getLogger(__name__)


class TopicDeletion:
    """The topics to delete; their state is in the context, for components that must leave them alone."""

    def __init__(
        self, environment: Environment, partitions: PartitionMachine, replicas: ReplicaMachine, *, enabled: bool
    ) -> None:
        """`enabled` is `delete.topic.enable`; without it every request to delete is dropped."""
        self._env = environment
        self._context = environment.context
        self._partitions = partitions
        self._replicas = replicas
        self._enabled = enabled

    def watch(self) -> None:
        """Register for topics that are to be deleted."""
        self._env.session.current.watch_children(DELETE_TOPICS, self._env.on_watch("TopicDeletion", self.wanted))

    def unwatch(self) -> None:
        """Remove the handler."""
        self._env.session.current.unwatch_children(DELETE_TOPICS)

    async def load(self) -> None:
        """Read which topics are to be deleted, and which of them cannot be now, when a new controller starts."""
        wanted = await self._env.session.current.children(DELETE_TOPICS)
        if not self._enabled:
            await self._drop_wishes(wanted)
            return
        self._context.deleting = set(wanted)
        self._context.deletion_ineligible = {
            topic
            for topic in wanted
            if self._is_reassigning(topic)
            or any(not self._context.is_online(r[2], r[:2]) for r in self._context.replicas_of_topic(topic))
        }

    async def wanted(self) -> None:
        """Event TopicDeletion: deletions were requested."""
        names = await self._env.session.current.children(DELETE_TOPICS)
        unknown = [name for name in names if name not in self._context.topics]
        if unknown:
            log.warning("deletion.unknown topics=%s", unknown)
            await self._drop_wishes(unknown)
        known = [name for name in names if name in self._context.topics]
        if not self._enabled:
            await self._drop_wishes(known)
        elif known:
            log.info("deletion.wanted topics=%s", known)
            self._context.deleting.update(known)
            self.hold([topic for topic in known if self._is_reassigning(topic)], "reassignment in progress")
            await self.advance()

    async def answered(self, broker_id: int, request_error: int, errors: dict[tuple[str, int], int]) -> None:
        """Event TopicDeletionStopReplicaResponseReceived: a broker answered which replicas it has deleted."""
        failed = [p for p, error in errors.items() if request_error != ErrorCode.NONE or error != ErrorCode.NONE]
        deleted = [partition for partition in errors if partition not in failed]
        await self.failed([(*partition, broker_id) for partition in failed])
        if deleted:
            replicas = [(*partition, broker_id) for partition in deleted if partition[0] in self._context.deleting]
            await self._replicas.change(replicas, ReplicaStatus.DELETION_SUCCESSFUL)
            await self.advance()

    async def failed(self, replicas: Sequence[Replica]) -> None:
        """Replicas could not be deleted: their topics wait until something has changed."""
        of_topics = [replica for replica in replicas if replica[0] in self._context.deleting]
        if of_topics:
            await self._replicas.change(of_topics, ReplicaStatus.DELETION_INELIGIBLE)
            self.hold({replica[0] for replica in of_topics}, "replica deletion failure")
            await self.advance()

    def hold(self, topics: Collection[str], reason: str) -> None:
        """Hold the deletion of these topics back, if requested, until `resume` names them."""
        held = sorted(self._context.deleting.intersection(topics))
        if held:
            log.info("deletion.held topics=%s reason=%s", held, reason)
            self._context.deletion_ineligible.update(held)

    async def resume(self, topics: Iterable[str]) -> None:
        """The obstacle to deleting these topics may be gone: try again."""
        resumed = self._context.deleting.intersection(topics)
        if resumed:
            self._context.deletion_ineligible -= resumed
            await self.advance()

    async def advance(self) -> None:
        """Advance every topic that is to be deleted as far as possible now."""
        if not self._enabled:
            return
        retried: list[Replica] = []
        eligible: list[str] = []
        for topic in sorted(self._context.deleting):
            states = {self._context.replica_status.get(r) for r in self._context.replicas_of_topic(topic)}
            if self._is_deleted(states):
                await self._complete(topic)
                continue
            if ReplicaStatus.DELETION_STARTED in states:
                continue
            retried += self._context.replicas_in(ReplicaStatus.DELETION_INELIGIBLE, topic)
            if topic not in self._context.deletion_ineligible:
                eligible.append(topic)
        if retried:
            await self._replicas.change(retried, ReplicaStatus.OFFLINE)
        if eligible:
            await self._begin(eligible)

    def _is_deleted(self, states: Collection[ReplicaStatus | None]) -> bool:
        """Whether a topic is deleted whose replicas are in these states."""
        left = {*states} - {ReplicaStatus.DELETION_SUCCESSFUL}
        if len(left) < len(states) and not self._env.rules.deletion_waits_for_dead_brokers:
            left -= {ReplicaStatus.DELETION_INELIGIBLE}
        return not left

    async def _begin(self, topics: Sequence[str]) -> None:
        """Take partitions down once, send the deletion to all brokers, and delete every replica that can be deleted."""
        log.info("deletion.started topics=%s", topics)
        unseen = [topic for topic in topics if topic not in self._context.deletion_started]
        if unseen:
            partitions = [partition for partition in self._context.partitions() if partition[0] in unseen]
            await self._partitions.change(partitions, PartitionStatus.OFFLINE)
            await self._partitions.change(partitions, PartitionStatus.NON_EXISTENT)
            self._context.deletion_started.update(unseen)
        gone = [partition for partition in self._context.partitions() if partition[0] in topics]
        self._env.tell_metadata(self._context.live_or_shutting_down, gone)
        dead, alive = [], []
        for replica in self._context.replicas_of(gone):
            if not self._context.is_online(replica[2], replica[:2]):
                dead.append(replica)
            elif self._context.replica_status.get(replica) is not ReplicaStatus.DELETION_SUCCESSFUL:
                alive.append(replica)
        await self._replicas.change(dead, ReplicaStatus.DELETION_INELIGIBLE)
        await self._replicas.change(alive, ReplicaStatus.OFFLINE)
        await self._replicas.change(alive, ReplicaStatus.DELETION_STARTED)
        self.hold({replica[0] for replica in dead}, "offline replicas")

    async def _complete(self, topic: str) -> None:
        """All replicas are gone: remove the topic, and last the request to delete it."""
        zk = self._env.session.current
        # First: a recreated topic must not count as a change of this one.
        zk.unwatch_node(topic_path(topic))
        deleted = self._context.replicas_in(ReplicaStatus.DELETION_SUCCESSFUL, topic)
        await self._replicas.change(deleted, ReplicaStatus.NON_EXISTENT)
        for level in await znodes_below(zk, topic_path(topic)):
            await self._env.writes.write_all([Delete(path=path) for path in level])
        if self._env.rules.deletion_removes_configs:
            await self._env.writes.write(Delete(path=topic_config_path(topic)))
        await self._env.writes.write(Delete(path=delete_topic_path(topic)))
        self._context.remove_topic(topic)
        log.info("deletion.complete topic=%s", topic)

    async def _drop_wishes(self, topics: Sequence[str]) -> None:
        await self._env.writes.write_all([Delete(path=delete_topic_path(topic)) for topic in topics])

    def _is_reassigning(self, topic: str) -> bool:
        return any(partition[0] == topic for partition in self._context.reassigning)
