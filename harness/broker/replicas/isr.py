"""Keeps the ISR of partitions led here in ZooKeeper: lagging replicas leave, caught-up ones join, the controller hears.

The leader itself writes the partition's state, compared by version, as up to Kafka 2.6. A new ISR counts only once
ZooKeeper has accepted it, which makes a leader harmless that was replaced unnoticed. A refused write leaves the old ISR
in place, and the next trigger tries again.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from harness.broker.background import begin, every
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas, now_s
from harness.broker.replicas.replication import NEVER_S
from harness.broker.state_log import StateLog
from harness.broker.zookeeper.client import ANY_VERSION, BadVersion, ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.partition_state import publish_isr_changes, write_isr
from harness.broker.zookeeper.znodes import PartitionStateZnode
from harness.events import IsrPropose, IsrResult
from harness.values import TopicPartition

log = logging.getLogger(__name__)

PUBLISH_CHECK_S = 2.5
"""Interval of checks whether to publish ISR changes (`ReplicaManager.isrChangeNotificationConfig`)."""
PUBLISH_QUIET_S = 5.0
"""Changes are published when the last of them is this old …"""
PUBLISH_AT_LATEST_S = 60.0
"""… or when nothing was published for this long."""


@dataclass(slots=True, kw_only=True)
class IsrKeeper:
    """Shrinks and expands ISRs; at most one change of a partition is in flight."""

    replicas: Replicas
    zookeeper: Callable[[], ZooKeeper]
    """Returns the session in force."""
    state_log: StateLog
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _unpublished: dict[TopicPartition, None] = field(default_factory=dict)
    _last_change_s: float = NEVER_S
    _last_publish_s: float = NEVER_S

    def start(self) -> None:
        """Start checking for lagging replicas, and publishing changes."""
        self._last_publish_s = now_s()
        self._spawn(every(self.replicas.lag_s / 2, self._look_for_laggards, name="isr.shrink"), "isr-shrink")
        self._spawn(every(PUBLISH_CHECK_S, self._publish_when_due, name="isr.publish"), "isr-publish")

    async def stop(self) -> None:
        """End the timers, and writes that wait for ZooKeeper."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def consider_joining(self, partition: Partition, replica_id: int) -> None:
        """Propose a larger ISR when this follower may join."""
        if not partition.proposed_isr and partition.wants_to_join(replica_id):
            self._propose(partition, "expand", (*partition.isr, replica_id))

    def shrink(self, partition: Partition) -> None:
        """Propose a smaller ISR when members lag."""
        if partition.proposed_isr:
            return
        out = partition.out_of_sync(now_s())
        if out:
            self._propose(partition, "shrink", tuple(member for member in partition.isr if member not in out))

    def _propose(self, partition: Partition, kind: str, isr: tuple[int, ...]) -> None:
        partition.proposed_isr = isr
        self._spawn(self._change(partition, kind, partition.leader_epoch), f"isr-{kind}")

    async def _change(self, partition: Partition, kind: str, leader_epoch: int) -> None:
        """Write the proposed ISR, and apply it if ZooKeeper accepted it and the leader epoch is unchanged."""
        began_s = now_s()
        isr = partition.proposed_isr
        try:
            leads_on = partition.is_leader and partition.leader_epoch == leader_epoch
            accepted = leads_on and await self._write(partition, kind, isr)
        finally:
            partition.proposed_isr = ()
        if not accepted:
            return
        self._last_change_s = now_s()
        self._unpublished[partition.key] = None
        self.replicas.advance(partition, cause=f"isr_{kind}")
        for replica_id, progress in partition.followers.items():
            if progress.last_fetch_s >= began_s:  # it could not be considered when it fetched
                self.consider_joining(partition, replica_id)

    async def _write(self, partition: Partition, kind: str, isr: tuple[int, ...]) -> bool:
        topic, number = partition.key
        leader_epoch, old, expected = partition.leader_epoch, partition.isr, partition.zk_version
        self._log_proposal(partition, kind, isr)
        state = PartitionStateZnode(
            leader=partition.broker_id, leader_epoch=leader_epoch, isr=isr, controller_epoch=partition.controller_epoch
        )
        known = expected if self.replicas.rules.isr_write_compares_versions else ANY_VERSION
        if not self.replicas.rules.isr_counts_once_accepted:
            partition.adopt_isr(isr, expected)
        result, version = "ok", -1
        try:
            version = await write_isr(self.zookeeper(), topic, number, state, known, state_log=self.state_log)
        except BadVersion as error:
            result = "badversion"
            log.info("isr.%s refused partition=%s-%d error=%s", kind, topic, number, error)
        except ZooKeeperError as error:
            result = "unknown"
            partition.unsettled_isr = isr
            log.warning("isr.%s failed partition=%s-%d error=%r", kind, topic, number, error)
        else:
            if not partition.is_leader or partition.leader_epoch != leader_epoch:
                result = "discarded"
        self.state_log.emit(
            IsrResult(
                topic=topic,
                partition=number,
                kind=kind,
                leader_epoch=leader_epoch,
                old=list(old),
                new=list(isr),
                zk_version=expected,
                result=result,
                new_zk_version=version,
            )
        )
        counters = self.replicas.counters
        if result != "ok":
            counters.failed_isr_updates += 1
            return False
        if kind == "shrink":
            counters.isr_shrinks += 1
        else:
            counters.isr_expands += 1
        partition.adopt_isr(isr, version)
        log.info("isr.%s complete partition=%s-%d isr=%s zk_version=%d", kind, topic, number, isr, version)
        return True

    def _log_proposal(self, partition: Partition, kind: str, isr: tuple[int, ...]) -> None:
        topic, number = partition.key
        self.state_log.emit(
            IsrPropose(
                topic=topic,
                partition=number,
                kind=kind,
                leader_epoch=partition.leader_epoch,
                old=list(partition.isr),
                new=list(isr),
                zk_version=partition.zk_version,
                log_end_offset=partition.log.log_end_offset,
                high_watermark=partition.high_watermark,
                epoch_start_offset=partition.epoch_start_offset,
                ends=partition.ends_of(isr),
            )
        )

    async def _look_for_laggards(self) -> None:
        for partition in self.replicas.all():
            if partition.is_leader:
                self.shrink(partition)
                # A follower that was about to join holds the high watermark back until it has lagged for too long.
                self.replicas.advance(partition, cause="lag")

    async def _publish_when_due(self) -> None:
        now = now_s()
        quiet = now - self._last_change_s > PUBLISH_QUIET_S
        if self._unpublished and (quiet or now - self._last_publish_s > PUBLISH_AT_LATEST_S):
            await self._publish()

    async def _publish(self) -> None:
        changed = sorted(self._unpublished)
        self._unpublished.clear()  # before the write: what changes during it must be published again
        try:
            await publish_isr_changes(self.zookeeper(), changed, state_log=self.state_log)
        except ZooKeeperError as error:
            log.warning("isr.publish failed partitions=%d error=%r", len(changed), error)
            self._unpublished.update(dict.fromkeys(changed))
        else:
            self._last_publish_s = now_s()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> None:
        begin(self._tasks, work, name)
