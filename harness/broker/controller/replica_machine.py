"""Moves replicas between states; those that go offline leave the ISR (Kafka's `ZkReplicaStateMachine`)."""

import logging
from collections.abc import Collection, Iterable, Sequence

from harness.broker.background import InSteps
from harness.broker.controller.context import Replica
from harness.broker.controller.environment import Environment
from harness.broker.controller.leadership import as_evidence, without_replica
from harness.broker.controller.transitions import REPLICA_PREVIOUS, ReplicaStatus
from harness.broker.zookeeper.client import BadVersion, Set, Stat
from harness.broker.zookeeper.partition_state import VersionedState, read_partition_states
from harness.broker.zookeeper.znodes import PartitionStateZnode, partition_state_path
from harness.events import IsrRemove, ReplicaStateChange
from harness.values import TopicPartition

log = logging.getLogger(__name__)


class ReplicaMachine:
    """The replicas' states; a failed change is logged and leaves the state unchanged."""

    def __init__(self, environment: Environment) -> None:
        self._env = environment
        self._context = environment.context

    async def start(self) -> None:
        """Send the live brokers their replicas, and take those of dead brokers out of their ISRs."""
        online, offline = [], []
        for replica in self._context.replicas_of(self._context.partitions()):
            if self._context.is_online(replica[2], replica[:2]):
                self._context.replica_status[replica] = ReplicaStatus.ONLINE
                online.append(replica)
            else:
                self._context.replica_status[replica] = ReplicaStatus.DELETION_INELIGIBLE
                offline.append(replica)
        await self.change(online, ReplicaStatus.ONLINE)
        await self.change(offline, ReplicaStatus.OFFLINE)

    async def change(self, replicas: Sequence[Replica], target: ReplicaStatus) -> None:
        """Move replicas to a state.

        Raises:
            ControllerMovedError: another controller has taken over.
        """
        self._env.batch.begin()
        legal = [replica for replica in replicas if self._is_legal(replica, target)]
        if target is ReplicaStatus.OFFLINE:
            for broker_id in sorted({replica[2] for replica in legal}):
                await self._take_offline(broker_id, [replica for replica in legal if replica[2] == broker_id])
        elif target in (ReplicaStatus.NEW, ReplicaStatus.ONLINE):
            async for replica in InSteps(legal):
                self._take_up(replica, target)
        else:
            async for replica in InSteps(legal):
                self._take_away(replica, target)
        self._env.send_batch()

    def _take_up(self, replica: Replica, target: ReplicaStatus) -> None:
        """Move one replica to New or Online, sending its broker the leader, if known; Offline if the broker is down."""
        topic, number, broker_id = replica
        known = self._context.leadership.get((topic, number))
        is_new = target is ReplicaStatus.NEW
        if is_new and known is not None and known.state.leader == broker_id:
            log.error("replica.refused replica=%s-%d-%d to=%s reason=it_leads", *replica, target)
            return
        if known is not None and (is_new or self._status(replica) is not ReplicaStatus.NEW):
            self._env.batch.add_leader_and_isr([broker_id], (topic, number), known, is_new=is_new)
        is_down = not is_new and broker_id not in self._context.live
        self._move(replica, ReplicaStatus.OFFLINE if is_down else target)

    def _take_away(self, replica: Replica, target: ReplicaStatus) -> None:
        """Move one replica a step towards removal; its broker is notified of the first one."""
        topic, number, broker_id = replica
        if target is ReplicaStatus.DELETION_STARTED:
            self._env.batch.add_stop_replica([broker_id], (topic, number), delete=True)
        self._move(replica, target)
        if target is ReplicaStatus.NON_EXISTENT:
            self._context.remove_replica(replica)

    async def _take_offline(self, broker_id: int, replicas: Sequence[Replica]) -> None:
        """Stop replicas of one broker, and take them out of the ISR where there is one."""
        partitions: list[TopicPartition] = [(topic, number) for topic, number, _ in replicas]
        async for partition in InSteps(partitions):
            self._env.batch.add_stop_replica([broker_id], partition, delete=False)
        led = [partition for partition in partitions if partition in self._context.leadership]
        states = await self._remove_from_isr(broker_id, led)
        async for partition, state in InSteps([*states.items()]):
            self._context.leadership[partition] = state
            if partition[0] in self._context.deleting:
                continue
            others = [replica for replica in self._context.replicas(partition) if replica != broker_id]
            self._env.batch.add_leader_and_isr(others, partition, state, is_new=False)
        never_led = [partition for partition in partitions if partition not in self._context.leadership]
        if never_led:
            self._env.batch.add_update_metadata(self._context.live_or_shutting_down, never_led)
        async for replica in InSteps(replicas):
            if replica[:2] in states or replica[:2] in never_led:
                self._move(replica, ReplicaStatus.OFFLINE)

    async def _remove_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, VersionedState]:
        """Return the partitions' states without this broker, written where it was in the ISR.

        A write that lost to another one is decided again. Partitions with an unreadable state are missing.
        """
        done: dict[TopicPartition, VersionedState] = {}
        remaining = list(partitions)
        while remaining:
            states = await read_partition_states(self._env.session.current, remaining)
            readable = dict(self._own(remaining, states))
            wanted: dict[TopicPartition, PartitionStateZnode] = {}
            emptied = await self._may_be_emptied({topic for topic, _ in readable})
            for partition, known in readable.items():
                reduced = without_replica(
                    known.state,
                    broker_id,
                    self._context.epoch.value,
                    keep_last=partition[0] not in emptied,
                )
                if reduced is None:
                    done[partition] = known
                else:
                    wanted[partition] = reduced
            results = await self._env.writes.write_all(
                [
                    Set(path=partition_state_path(*p), data=state.encode(), version=readable[p].zk_version)
                    for p, state in wanted.items()
                ]
            )
            remaining = []
            async for (partition, state), result in InSteps([*zip(wanted.items(), results, strict=True)]):
                if isinstance(result, Stat):
                    done[partition] = VersionedState(state=state, zk_version=result.version)
                    self._log_removal(partition, broker_id, readable[partition], done[partition])
                elif isinstance(result, BadVersion):
                    remaining.append(partition)
                else:
                    log.error("isr.remove failed partition=%s-%d replica=%d error=%r", *partition, broker_id, result)
        return done

    async def _may_be_emptied(self, topics: Collection[str]) -> Collection[str]:
        """Return the topics whose ISRs may lose their last member."""
        if not self._env.rules.last_isr_member_stays:
            return topics
        if not self._env.unclean_empties_isr:
            return ()
        return [topic for topic in sorted(topics) if await self._env.unclean_allowed(topic) is True]

    def _own(
        self, partitions: Iterable[TopicPartition], states: dict[TopicPartition, VersionedState]
    ) -> Iterable[tuple[TopicPartition, VersionedState]]:
        """Yield the states that this controller may change."""
        for partition in partitions:
            known = states.get(partition)
            if known is None:
                log.error("isr.remove failed partition=%s-%d error=no_state_znode", *partition)
            elif known.state.controller_epoch > self._context.epoch.value:
                log.error("isr.remove failed partition=%s-%d error=written_by_another_controller", *partition)
            else:
                yield partition, known

    def _status(self, replica: Replica) -> ReplicaStatus:
        return self._context.replica_status.get(replica, ReplicaStatus.NON_EXISTENT)

    def _is_legal(self, replica: Replica, target: ReplicaStatus) -> bool:
        legal = self._status(replica) in REPLICA_PREVIOUS[target]
        if not legal:
            log.error("replica.illegal replica=%s-%d-%d from=%s to=%s", *replica, self._status(replica), target)
        return legal

    def _move(self, replica: Replica, target: ReplicaStatus) -> None:
        previous = self._status(replica)
        self._context.replica_status[replica] = target
        self._env.state_log.emit(
            ReplicaStateChange(
                topic=replica[0],
                partition=replica[1],
                replica=replica[2],
                from_state=str(previous),
                to_state=str(target),
                controller_epoch=self._context.epoch.value,
            )
        )

    def _log_removal(
        self, partition: TopicPartition, replica: int, previous: VersionedState, result: VersionedState
    ) -> None:
        self._env.state_log.emit(
            IsrRemove(
                topic=partition[0],
                partition=partition[1],
                replica=replica,
                controller_epoch=self._context.epoch.value,
                previous=as_evidence(previous),
                result=as_evidence(result),
            )
        )
