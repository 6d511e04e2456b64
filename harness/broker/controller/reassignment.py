"""Moves partitions to other brokers: adds the new replicas, waits until they are in sync, removes the old ones.

After Kafka's `KafkaController.onPartitionReassignment` (KIP-455), whose phases are named here: U records the request, A
starts the new replicas, B finishes. The origin is in the topic's znode until the very last step, so a new controller
continues wherever the old one was, and a cancellation is a reassignment back to the origin.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from harness.broker.controller.assignment import Assignment
from harness.broker.controller.environment import Environment
from harness.broker.controller.errors import StateChangeFailed
from harness.broker.controller.leadership import as_evidence, bumped
from harness.broker.controller.partition_machine import PartitionMachine
from harness.broker.controller.reassignment_requests import (
    DONE,
    Reassigned,
    Wish,
    wanted_assignment,
)
from harness.broker.controller.replica_machine import ReplicaMachine
from harness.broker.controller.selectors import Strategy
from harness.broker.controller.topic_deletion import TopicDeletion
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import ANY_VERSION, BadVersion, Delete, NoNode, Set, Stat
from harness.broker.zookeeper.partition_state import VersionedState, read_partition_state
from harness.broker.zookeeper.znodes import (
    REASSIGN_PARTITIONS,
    MalformedZnode,
    decode_reassignments,
    encode_reassignments,
    partition_state_path,
    topic_path,
)
from harness.events import EpochBump
from harness.values import TopicPartition

log = logging.getLogger(__name__)

EVENT = "ZkPartitionReassignment"


class Reassignments:
    """The running reassignments; the context lists them."""

    def __init__(
        self,
        environment: Environment,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        deletion: TopicDeletion,
    ) -> None:
        self._env = environment
        self._context = environment.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # --- where wishes come from ---

    def watch(self) -> None:
        """Register for reassignments that are requested in ZooKeeper."""
        handler = self._env.on_watch(EVENT, self.znode_changed)
        self._env.session.current.watch_node(REASSIGN_PARTITIONS, handler)

    def unwatch(self) -> None:
        """Remove all handlers."""
        zk = self._env.session.current
        zk.unwatch_node(REASSIGN_PARTITIONS)
        for partition in sorted(self._context.reassigning):
            zk.unwatch_node(partition_state_path(*partition))

    def load(self) -> None:
        """Find the reassignments that were running under the controller before."""
        self._context.reassigning = {p for p in self._context.partitions() if self._context.assignment(p).is_reassigned}

    async def take_over(self) -> None:
        """Continue the requests in ZooKeeper, then all running reassignments."""
        taken_over = await self.znode_changed()
        await self.resume(lambda partition, _: partition not in taken_over)

    async def znode_changed(self) -> set[TopicPartition]:
        """Event ZkPartitionReassignment: begin what the znode asks for, and return which partitions that concerns."""
        targets = await self._read_znode()
        if targets is None:
            return set()
        results = await self._begin({p: Wish(target=target) for p, target in targets.items()}, check_replicas=False)
        failed = {partition for partition, result in results.items() if result != DONE}
        if failed or not targets:
            log.warning("reassignment.failed results=%s", {p: results[p] for p in sorted(failed)})
            await self._prune_znode(lambda partition, _: partition in failed)
        return results.keys() - failed

    async def requested(self, wishes: Mapping[TopicPartition, Wish]) -> dict[TopicPartition, Reassigned]:
        """Event ApiPartitionReassignment: begin or cancel what a client asks for; it overrules the znode."""
        return await self._begin(wishes, check_replicas=True)

    def running(self, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, Assignment]:
        """Return the running reassignments, of some partitions or of all."""
        chosen = sorted(self._context.reassigning) if partitions is None else partitions
        assignments = {partition: self._context.assignment(partition) for partition in chosen}
        return {partition: assignment for partition, assignment in assignments.items() if assignment.is_reassigned}

    async def resume(self, chosen: Callable[[TopicPartition, Assignment], bool]) -> None:
        """Advance the chosen running reassignments by a step, if possible."""
        for partition in sorted(self._context.reassigning):
            assignment = self._context.assignment(partition)
            if chosen(partition, assignment):
                try:
                    await self._advance(partition, assignment)
                except StateChangeFailed as error:
                    log.error("reassignment.failed partition=%s-%d error=%s", *partition, error)

    async def isr_changed(self, partition: TopicPartition) -> None:
        """Event PartitionReassignmentIsrChange: finish if the new replicas are all in sync now."""
        if partition in self._context.reassigning:
            assignment = self._context.assignment(partition)
            if await self._is_complete(partition, assignment):
                await self._advance(partition, assignment)

    async def _begin(
        self, wishes: Mapping[TopicPartition, Wish], *, check_replicas: bool
    ) -> dict[TopicPartition, Reassigned]:
        results: dict[TopicPartition, Reassigned] = {}
        accepted: dict[TopicPartition, Assignment] = {}
        for partition, wish in wishes.items():
            wanted = wanted_assignment(self._context, partition, wish, check_replicas=check_replicas)
            if isinstance(wanted, Assignment):
                accepted[partition] = wanted
            else:
                results[partition] = wanted
        if check_replicas and accepted:
            await self._prune_znode(lambda partition, _: partition in accepted)
        for partition, assignment in accepted.items():
            if partition[0] in self._context.deleting or not self._context.replicas(partition):
                message = "The partition does not exist."
                results[partition] = Reassigned(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)
                continue
            try:
                await self._advance(partition, assignment)
                results[partition] = DONE
            except StateChangeFailed as error:
                results[partition] = Reassigned(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=str(error))
        return results

    # --- the steps ---

    async def _advance(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Advance one reassignment as far as possible now.

        Raises:
            StateChangeFailed: the partition's state or the topic's znode could not be written.
        """
        self._deletion.hold([partition[0]], "topic reassignment in progress")
        await self._take_over_wish(partition, wanted)
        if await self._is_complete(partition, wanted):
            await self._finish(partition, wanted)
            return
        log.info("reassignment.waiting partition=%s-%d assignment=%s", *partition, wanted)
        try:
            await self._bump(partition)
        except StateChangeFailed:
            self._context.unstarted.update((*partition, replica) for replica in wanted.adding)
            raise
        self._tell_leadership(partition, wanted.replicas)
        for replica in wanted.adding:
            await self._replicas.change([(*partition, replica)], ReplicaStatus.NEW)
            self._context.unstarted.discard((*partition, replica))

    async def _take_over_wish(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Phase U: to ZooKeeper, then to memory; replicas of an earlier target alone are removed at once."""
        current = self._context.assignment(partition)
        if current != wanted:
            await self._write_assignment(partition, wanted)
            self._context.assign(partition, wanted)
            await self._remove(partition, [replica for replica in current.replicas if replica not in wanted.replicas])
        zk = self._env.session.current
        changed = self._env.on_watch("PartitionReassignmentIsrChange", lambda: self.isr_changed(partition))
        zk.watch_node(partition_state_path(*partition), changed)
        self._context.reassigning.add(partition)

    async def _finish(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Phase B: the target replicas are in sync, or nothing but the order changes."""
        added = [(*partition, replica) for replica in wanted.adding]
        await self._replicas.change(added, ReplicaStatus.ONLINE)
        self._context.unstarted.update(replica for replica in added if replica not in self._context.replica_status)
        complete = Assignment(replicas=wanted.target)
        self._context.assign(partition, complete)
        await self._move_leader(partition, complete)
        await self._remove(partition, wanted.removing)
        await self._write_assignment(partition, complete)
        self._env.session.current.unwatch_node(partition_state_path(*partition))
        await self._prune_znode(lambda named, target: (named, target) == (partition, complete.replicas))
        self._context.reassigning.discard(partition)
        self._env.tell_metadata(self._context.live_or_shutting_down, [partition])
        log.info("reassignment.complete partition=%s-%d replicas=%s", *partition, complete.replicas)
        await self._deletion.resume([partition[0]])

    async def _move_leader(self, partition: TopicPartition, complete: Assignment) -> None:
        """Elect among the target replicas unless one of them leads already; then they only get the new epoch."""
        leader = self._context.leader(partition)
        if leader in complete.replicas and self._context.is_online(leader, partition):
            await self._bump(partition)
            self._tell_leadership(partition, complete.replicas)
        else:
            await self._partitions.change(
                [partition], PartitionStatus.ONLINE, Strategy.REASSIGN, trigger="reassignment"
            )

    async def _remove(self, partition: TopicPartition, removed: Sequence[int]) -> None:
        """Take replicas out of the ISR and request their deletion, without waiting for it."""
        replicas = [(*partition, replica) for replica in removed]
        if replicas:
            for status in (
                ReplicaStatus.OFFLINE,
                ReplicaStatus.DELETION_STARTED,
                ReplicaStatus.DELETION_SUCCESSFUL,
                ReplicaStatus.NON_EXISTENT,
            ):
                await self._replicas.change(replicas, status)

    async def _is_complete(self, partition: TopicPartition, assignment: Assignment) -> bool:
        """Whether every target replica is in ZooKeeper's present ISR, and one can lead.

        A follower can enter the ISR by its fetches while its broker is not registered. Kafka completes a reassignment
        to such followers: it elects none of them, removes the old leader, and the partition has no leader.
        """
        if not assignment.is_reassigned:
            return True
        if not any(self._context.is_online(replica, partition) for replica in assignment.target):
            return False
        known = await read_partition_state(self._env.session.current, *partition)
        return known is not None and set(assignment.target) <= set(known.state.isr)

    # --- writing and telling ---

    async def _write_assignment(self, partition: TopicPartition, assignment: Assignment) -> None:
        topic, number = partition
        znode = self._context.topics[topic].with_partition(
            number, assignment.replicas, adding=assignment.adding, removing=assignment.removing
        )
        result = await self._env.writes.write(Set(path=topic_path(topic), data=znode.encode(), version=ANY_VERSION))
        if not isinstance(result, Stat):
            raise StateChangeFailed(f"the assignment of {topic}-{number} cannot be written: {result!r}")

    async def _bump(self, partition: TopicPartition) -> None:
        """Raise the leader epoch, so that brokers take the changed replicas over."""
        epoch = self._context.epoch.value
        while True:
            known = await read_partition_state(self._env.session.current, *partition)
            if known is None or known.state.controller_epoch > epoch:
                raise StateChangeFailed(f"the state of {partition[0]}-{partition[1]} is not this controller's: {known}")
            state = bumped(known.state, epoch)
            result = await self._env.writes.write(
                Set(path=partition_state_path(*partition), data=state.encode(), version=known.zk_version)
            )
            if isinstance(result, Stat):
                break
            if not isinstance(result, BadVersion):
                raise StateChangeFailed(f"the epoch of {partition[0]}-{partition[1]} cannot be written: {result!r}")
        written = self._context.leadership[partition] = VersionedState(state=state, zk_version=result.version)
        self._env.state_log.emit(
            EpochBump(
                topic=partition[0],
                partition=partition[1],
                controller_epoch=epoch,
                previous=as_evidence(known),
                result=as_evidence(written),
            )
        )

    def _tell_leadership(self, partition: TopicPartition, receivers: Sequence[int]) -> None:
        self._env.batch.begin()
        self._env.batch.add_leader_and_isr(receivers, partition, self._context.leadership[partition], is_new=False)
        self._env.send_batch()

    # --- the znode ---

    async def _read_znode(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """Return the requested targets, or None when there is no znode; arms the watch."""
        zk = self._env.session.current
        if await zk.exists(REASSIGN_PARTITIONS) is None:
            return None
        try:
            data, _ = await zk.get(REASSIGN_PARTITIONS)
            return decode_reassignments(data)
        except NoNode:
            return None
        except MalformedZnode as error:
            log.error("reassignment.ignored error=%s", error)
            return {}

    async def _prune_znode(self, is_done: Callable[[TopicPartition, tuple[int, ...]], bool]) -> None:
        """Remove partitions from the znode; the last one removes it, and the next one is watched for."""
        targets = await self._read_znode()
        if targets is None:
            return
        left = {partition: target for partition, target in targets.items() if not is_done(partition, target)}
        if not left:
            await self._env.writes.write(Delete(path=REASSIGN_PARTITIONS))
            self._env.enqueue(EVENT, self._watch_again)
        elif left != targets:
            data = encode_reassignments(left)
            await self._env.writes.write(Set(path=REASSIGN_PARTITIONS, data=data, version=ANY_VERSION))

    async def _watch_again(self) -> None:
        await self.znode_changed()
