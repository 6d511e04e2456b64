"""Which offsets has this broker's part of `__consumer_offsets` committed, and may it answer for a group? Pure.

A partition of `__consumer_offsets` is *loading* from the moment this broker leads it until its log has been read, and
*owned* from then on. Its leader epoch is the *coordinator epoch*: a load or unload of an older one comes too late and
changes nothing (KAFKA-9844 and its kin: an old unload must not drop what a newer election loaded).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from harness.broker.coordinator.records import CommittedOffset, OffsetKey, OffsetRecord, partition_of
from harness.broker.wire.error_codes import ErrorCode

_NEVER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    log_offset: int
    value: CommittedOffset


@dataclass(slots=True)
class _Shard:
    """One partition of `__consumer_offsets` on this broker."""

    leader_epoch: int = _NEVER
    state: str = "absent"
    """absent, loading or owned."""
    groups: dict[str, dict[tuple[str, int], _Entry]] = field(default_factory=dict)


@dataclass(slots=True)
class OffsetStore:
    """The committed offsets of all groups that this broker coordinates."""

    partitions: int
    """Of `__consumer_offsets`."""
    _shards: dict[int, _Shard] = field(default_factory=dict)

    def begin_load(self, partition: int, leader_epoch: int) -> bool:
        """Mark a partition as loading; False when a newer epoch is known."""
        shard = self._shard(partition)
        if leader_epoch <= shard.leader_epoch:
            return False
        self._shards[partition] = _Shard(leader_epoch=leader_epoch, state="loading")
        return True

    def finish_load(self, partition: int, leader_epoch: int, records: Iterable[OffsetRecord]) -> bool:
        """Take over what the log says, the last record of a key winning; False when the load was overtaken."""
        shard = self._shard(partition)
        if shard.leader_epoch != leader_epoch or shard.state != "loading":
            return False
        for record in records:
            _put(shard, record)
        shard.groups = {group: offsets for group, offsets in shard.groups.items() if offsets}
        shard.state = "owned"
        return True

    def unload(self, partition: int, leader_epoch: int) -> bool:
        """Forget a partition that this broker does not lead any more; False when that is old news.

        The same epoch is no old news: it comes from a deletion of the replica, which has no epoch of its own.
        """
        shard = self._shard(partition)
        if leader_epoch < shard.leader_epoch:
            return False
        was_mine = shard.state != "absent"
        self._shards[partition] = _Shard(leader_epoch=leader_epoch)
        return was_mine

    def gate(self, group: str) -> ErrorCode:
        """Return NONE when this broker may answer for the group, else why not."""
        state = self._shard(partition_of(group, self.partitions)).state
        if state == "loading":
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if state == "owned" else ErrorCode.NOT_COORDINATOR

    def has_group(self, group: str) -> bool:
        """Whether the group is known, be it without offsets."""
        return group in self._shard_of(group).groups

    def create_group(self, group: str) -> None:
        """Make a group known; one that exists stays as it is."""
        self._shard_of(group).groups.setdefault(group, {})

    def committed(self, partition: int, records: Iterable[OffsetRecord]) -> None:
        """Apply what `__consumer_offsets` has acknowledged; an older record than the known one changes nothing."""
        shard = self._shard(partition)
        if shard.state == "owned":
            for record in records:
                _put(shard, record)

    def get(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return what the group committed last."""
        entry = self._shard_of(group).groups.get(group, {}).get((topic, partition))
        return entry.value if entry else None

    def offsets_of(self, group: str) -> dict[str, dict[int, CommittedOffset]]:
        """Return all that the group committed, by topic and partition, sorted."""
        offsets: dict[str, dict[int, CommittedOffset]] = {}
        for (topic, partition), entry in sorted(self._shard_of(group).groups.get(group, {}).items()):
            offsets.setdefault(topic, {})[partition] = entry.value
        return offsets

    def commits_to(self, partitions: Collection[tuple[str, int]]) -> dict[int, list[OffsetKey]]:
        """Return who has committed positions in these partitions, by the partition of `__consumer_offsets`."""
        commits = {
            number: [
                OffsetKey(group=group, topic=topic, partition=partition)
                for group, offsets in sorted(shard.groups.items())
                for topic, partition in sorted(offsets)
                if (topic, partition) in partitions
            ]
            for number, shard in sorted(self._shards.items())
            if shard.state == "owned"
        }
        return {number: keys for number, keys in commits.items() if keys}

    def forget(self, partition: int, keys: Iterable[OffsetKey]) -> None:
        """Drop these positions, whatever `__consumer_offsets` says of them."""
        groups = self._shard(partition).groups
        for key in keys:
            groups.get(key.group, {}).pop((key.topic, key.partition), None)

    def counts(self, partition: int) -> tuple[int, int]:
        """Return how many groups and offsets a partition holds."""
        groups = self._shard(partition).groups
        return len(groups), sum(map(len, groups.values()))

    def _shard(self, partition: int) -> _Shard:
        return self._shards.setdefault(partition, _Shard())

    def _shard_of(self, group: str) -> _Shard:
        return self._shard(partition_of(group, self.partitions))


def _put(shard: _Shard, record: OffsetRecord) -> None:
    key: OffsetKey = record.key
    offsets = shard.groups.setdefault(key.group, {})
    known = offsets.get((key.topic, key.partition))
    if known is not None and known.log_offset >= record.log_offset:
        return
    if record.value is None:
        offsets.pop((key.topic, key.partition), None)
    else:
        offsets[key.topic, key.partition] = _Entry(log_offset=record.log_offset, value=record.value)
