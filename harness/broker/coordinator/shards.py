"""The partitions of a coordinator's topic that this broker serves, and their content. Pure.

A partition is *loading* from the moment this broker leads it until its log has been read, and *owned* from then on. Its
leader epoch is the *coordinator epoch*: a load or unload of an older one comes too late and changes nothing
(KAFKA-10614: an old unload must not drop what a newer election loaded).
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from harness.broker.coordinator.placement import partition_of
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.wire.error_codes import ErrorCode

_NEVER = -1

T = TypeVar("T")


@dataclass(slots=True)
class Shard(Generic[T]):
    """One partition of the topic on this broker."""

    leader_epoch: int = _NEVER
    state: str = "absent"
    """absent, loading or owned."""
    entries: dict[str, T] = field(default_factory=dict)
    """The partition's content, by key: the name of a group, a transactional id."""


@dataclass(slots=True)
class Shards(Generic[T]):
    """All partitions of a coordinator's topic."""

    partitions: int
    rules: ProtocolRules = RIGHT
    _shards: dict[int, Shard[T]] = field(default_factory=dict)

    def of(self, partition: int) -> Shard[T]:
        """Return a partition, led here or not."""
        return self._shards.setdefault(partition, Shard())

    def holding(self, key: str) -> Shard[T]:
        """Return the partition of a key."""
        return self.of(partition_of(key, self.partitions))

    def owned(self) -> list[tuple[int, Shard[T]]]:
        """Return the partitions that this broker may serve, in order."""
        return [each for each in sorted(self._shards.items(), key=lambda item: item[0]) if each[1].state == "owned"]

    @property
    def present(self) -> list[int]:
        """The partitions that are loaded or loading, in order."""
        return sorted(partition for partition, shard in self._shards.items() if shard.state != "absent")

    @property
    def is_loading(self) -> bool:
        """Whether a part is not loaded yet."""
        return any(shard.state == "loading" for shard in self._shards.values())

    def coordinator_error(self, key: str) -> ErrorCode:
        """Return NONE when this broker may serve the key, else why not."""
        state = self.holding(key).state
        if state == "loading":
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if state == "owned" else ErrorCode.NOT_COORDINATOR

    def begin_load(self, partition: int, leader_epoch: int) -> bool:
        """Mark a partition as loading; False when a newer epoch is known."""
        if leader_epoch <= self.of(partition).leader_epoch:
            return False
        self._shards[partition] = Shard(leader_epoch=leader_epoch, state="loading")
        return True

    def loaded(self, partition: int, leader_epoch: int) -> Shard[T] | None:
        """Return a partition to fill with the loaded content, owned from now on; None when the load was overtaken."""
        shard = self.of(partition)
        if shard.leader_epoch != leader_epoch or shard.state != "loading":
            return None
        shard.state = "owned"
        return shard

    def unload(self, partition: int, leader_epoch: int) -> bool:
        """Unload a partition that this broker does not lead any more; False when the request is outdated.

        The same epoch is not outdated: it comes from a deletion of the replica, which has no epoch of its own.
        """
        shard = self.of(partition)
        if leader_epoch < shard.leader_epoch and self.rules.late_unloads_are_ignored:
            return False
        was_mine = shard.state != "absent"
        self._shards[partition] = Shard(leader_epoch=leader_epoch)
        return was_mine
