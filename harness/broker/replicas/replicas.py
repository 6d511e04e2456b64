"""The replicas that this broker hosts, and the requests that wait for changes of them."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness.broker.log.directories import LogDirectories
from harness.broker.log.directory import DirectoryOffline
from harness.broker.log.log import LogSettings
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.counters import Counters
from harness.broker.replicas.in_force import ConfigurationsInForce
from harness.broker.replicas.partition import Partition, PartitionError, nobody_else
from harness.broker.replicas.purgatory import Purgatory
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import NO_EPOCH
from harness.events import NO_LEADER
from harness.values import TopicPartition


def now_s() -> float:
    """Return the running loop's time, the only clock of replication."""
    return asyncio.get_running_loop().time()


@dataclass(slots=True, kw_only=True)
class Replicas:
    """All partitions that the controller assigned to this broker since it started."""

    broker_id: int
    logs: LogDirectories
    metadata: MetadataCache
    state_log: StateLog
    rules: ProtocolRules
    lag_s: float
    log_settings: Callable[[str], LogSettings]
    """A topic's log settings."""
    in_force: ConfigurationsInForce
    put_aside: Callable[[str], None]
    """Called with the folder of a deleted log, for later removal."""
    committing_needs: Callable[[str], int] = nobody_else
    """Returns how many must be in sync for a topic's high watermark to rise."""
    appends: Purgatory[TopicPartition] = field(default_factory=Purgatory)
    """acks=all requests that wait for the high watermark."""
    fetches: Purgatory[TopicPartition] = field(default_factory=Purgatory)
    """Fetches that wait for records, by followers for a new high watermark too."""
    deletions: Purgatory[TopicPartition] = field(default_factory=Purgatory)
    """DeleteRecords requests that wait for followers."""
    counters: Counters = field(default_factory=Counters)
    _partitions: dict[TopicPartition, Partition] = field(default_factory=dict)
    _offline: set[TopicPartition] = field(default_factory=set)
    """Replicas that belong on failed disks."""
    _checkpointed: dict[TopicPartition, int] = field(default_factory=dict)

    def load_high_watermarks(self) -> None:
        """Read the checkpoint of the previous process; partitions hosted later start from it."""
        checkpoint = self.logs.read_high_watermarks()
        self._checkpointed = {key: offset for key, offset in checkpoint.items() if self.logs.get(*key) is not None}

    def get(self, topic: str, partition: int) -> Partition | None:
        """Return a hosted partition."""
        return self._partitions.get((topic, partition))

    def all(self) -> list[Partition]:
        """Return every hosted partition, by topic and number."""
        return [self._partitions[key] for key in sorted(self._partitions)]

    def is_unknown(self, topic: str, partition: int) -> bool:
        """Whether neither this broker nor what it knows of the cluster has a partition."""
        key = (topic, partition)
        here = key in self._partitions or self.is_offline(topic, partition)
        return not here and self.metadata.partition(topic, partition) is None

    def led(self, topic: str, partition: int, current_leader_epoch: int = NO_EPOCH) -> Partition:
        """Return a partition that this broker leads.

        Raises:
            PartitionError: it is unknown to the cluster, being deleted, hosted or led elsewhere, on a failed disk, or
                the sender's leader epoch differs.
        """
        hosted = self._served(topic, partition)
        hosted.check_leads(current_leader_epoch)
        return hosted

    def followed_or_led(self, topic: str, partition: int, current_leader_epoch: int) -> Partition:
        """Return a partition that this broker leads or follows; raises PartitionError as `led`."""
        hosted = self._served(topic, partition)
        hosted.check_epoch(current_leader_epoch)
        return hosted

    def _served(self, topic: str, partition: int) -> Partition:
        hosted = self._partitions.get((topic, partition))
        if hosted is not None and not hosted.being_deleted:
            return hosted
        if self.is_offline(topic, partition):
            raise PartitionError(ErrorCode.KAFKA_STORAGE_ERROR)
        known = self.metadata.partition(topic, partition) is not None
        raise PartitionError(ErrorCode.NOT_LEADER_FOR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def host(self, topic: str, partition: int) -> Partition:
        """Return a partition; a new one gets its log created and its high watermark from the checkpoint.

        Raises:
            OSError: the log cannot be created, or is on a failed disk; the partition is offline.
        """
        key = (topic, partition)
        hosted = self._partitions.get(key)
        if hosted is None:
            if key in self._offline:
                raise DirectoryOffline(f"{topic}-{partition} is on a disk that has failed")
            try:
                log = self.logs.get_or_create(topic, partition, self.log_settings(topic))
            except OSError:
                self._offline.add(key)
                raise
            is_known = self.rules.high_watermarks_come_from_checkpoints
            checkpointed = self._checkpointed.get(key, 0) if is_known else log.log_end_offset
            hosted = self._partitions[key] = Partition(
                key=key,
                broker_id=self.broker_id,
                log=log,
                state_log=self.state_log,
                rules=self.rules,
                lag_s=self.lag_s,
                committing_needs=self.committing_needs,
                high_watermark=max(log.log_start_offset, min(checkpointed, log.log_end_offset)),
            )
            self.in_force.look(hosted)
        return hosted

    def configured(self, topic: str) -> None:
        """Have the logs of a topic act on its present settings."""
        for partition in self.all():
            if partition.key[0] == topic:
                partition.log.settings = self.log_settings(topic)
                self.in_force.look(partition)

    def doom(self, keys: Iterable[TopicPartition]) -> None:
        """Stop serving these partitions: their topics are being deleted."""
        for key in keys:
            hosted = self._partitions.get(key)
            if hosted is not None:
                hosted.being_deleted = True

    def delete(self, topic: str, partition: int) -> None:
        """Remove a partition and delete its log, also one with only a log left."""
        key = (topic, partition)
        hosted = self._partitions.pop(key, None)
        if hosted is not None:
            hosted.leader = NO_LEADER  # holders of this object find no leader here
            self._given_up(hosted)
        self._checkpointed.pop(key, None)
        folder = self.logs.delete(topic, partition)
        if folder is not None:
            self.put_aside(folder)

    def _given_up(self, partition: Partition) -> None:
        if all(topic != partition.key[0] for topic, _ in self._partitions):
            self.in_force.gone(partition)

    def is_offline(self, topic: str, partition: int) -> bool:
        """Whether a partition should be here but its disk has failed."""
        return (topic, partition) in self._offline

    @property
    def offline_count(self) -> int:
        """How many partitions belong here and are offline."""
        return len(self._offline)

    def take_offline(self, held: set[TopicPartition]) -> list[Partition]:
        """Give up the replicas of a failed disk, and return those that were hosted; waiting requests are answered."""
        taken = [partition for partition in self.all() if partition.key in held]
        self._offline |= held
        for partition in taken:
            del self._partitions[partition.key]
            partition.take_offline()
            self._given_up(partition)
        for partition in taken:
            self.wake(partition.key)
        return taken

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the content of the checkpoint: partitions not hosted yet keep their entry."""
        not_heard_of = self._checkpointed if self.rules.high_watermarks_are_kept else {}
        return not_heard_of | {key: hosted.high_watermark for key, hosted in self._partitions.items()}

    # --- waking waiting requests ---

    def advance(self, partition: Partition, *, cause: str) -> bool:
        """Raise a leader's high watermark if it may, wake requests that waited for it, and return whether it moved."""
        moved = partition.advance_high_watermark(now_s(), cause=cause)
        if moved:
            self.wake(partition.key)
        return moved

    def appended(self, partition: Partition) -> None:
        """Records were appended by the leader: wake the followers, and commit those that no other replica must have."""
        if not self.advance(partition, cause="append"):
            self.fetches.check(partition.key)

    def brokers_changed(self) -> None:
        """The live brokers may have changed: requests no longer wait for a dead one's log to start later."""
        if len(self.deletions):
            for partition in self.all():
                self.deletions.check(partition.key)

    def wake(self, key: TopicPartition) -> None:
        """A partition changed in a way that any waiting request may depend on."""
        self.appends.check(key)
        self.deletions.check(key)
        self.fetches.check(key)
