"""The groups in this broker's part of `__consumer_offsets`, and their committed offsets. Pure."""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

from harness.broker.coordinator.group import Group, GroupState, Term, loaded_group
from harness.broker.coordinator.group_records import GroupMetadata
from harness.broker.coordinator.membership import Membership
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.records import CommittedOffset, GroupRecord, OffsetKey, OffsetRecord
from harness.broker.coordinator.requests import GroupLimits
from harness.broker.coordinator.shards import Shard, Shards
from harness.broker.coordinator.statistics import GroupCounters
from harness.broker.rules import RIGHT, ProtocolRules
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET
from harness.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A committed offset, with the offset of its record in the log: -1 before it is stored."""

    log_offset: int
    value: CommittedOffset


@dataclass(slots=True)
class KnownGroup:
    """A group with its committed offsets."""

    membership: Membership
    offsets: dict[TopicPartition, Position] = field(default_factory=dict)
    under_way: Counter[TopicPartition] = field(default_factory=Counter)
    """Commits being stored."""
    held: dict[int, dict[TopicPartition, Position]] = field(default_factory=dict)
    """Offsets in open transactions, by producer id (Kafka's `pendingTransactionalOffsetCommits`)."""

    @property
    def is_over(self) -> bool:
        """Whether it is empty: no members, no offsets, and none to come."""
        empty = self.membership.group.state is GroupState.EMPTY
        return empty and not self.offsets and not self.has_offsets_to_come

    @property
    def has_offsets_to_come(self) -> bool:
        """Whether commits are being stored, or wait for the end of a transaction."""
        return bool(self.under_way or self.held)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether the position in a partition may change soon."""
        return partition in self.under_way or any(partition in offsets for offsets in self.held.values())


@dataclass(slots=True)
class GroupStore:
    """All groups that this broker coordinates, with their committed offsets."""

    partitions: int
    """Of `__consumer_offsets`."""
    limits: GroupLimits = field(default_factory=GroupLimits)
    rules: ProtocolRules = RIGHT
    counters: GroupCounters = field(default_factory=GroupCounters)
    _shards: Shards[KnownGroup] = field(init=False)
    holders: dict[int, set[str]] = field(default_factory=dict)
    """The groups that hold offsets of open transactions, by producer id."""

    def __post_init__(self) -> None:
        self._shards = Shards(self.partitions, self.rules)

    # --- loads and unloads ---

    @property
    def present(self) -> list[int]:
        """The partitions that are loaded or loading, in order."""
        return self._shards.present

    @property
    def owned(self) -> list[tuple[int, int]]:
        """The partitions that this broker may serve, in order, with their leader epochs."""
        return [(partition, shard.leader_epoch) for partition, shard in self._shards.owned()]

    def begin_load(self, partition: int, leader_epoch: int) -> bool:
        """Mark a partition as loading; False when a newer epoch is known."""
        begun = self._shards.begin_load(partition, leader_epoch)
        if begun:
            self._forget_holders(partition)
        return begun

    def finish_load(
        self,
        partition: int,
        leader_epoch: int,
        records: Iterable[OffsetRecord | GroupRecord],
        held: Iterable[OffsetRecord] = (),
    ) -> bool:
        """Set the loaded content, the last record of a key winning; False when the load was overtaken.

        `held` offsets wait for the end of their transaction.
        """
        shard = self._shards.loaded(partition, leader_epoch)
        if shard is None:
            return False
        offsets: list[OffsetRecord] = []
        groups: dict[str, GroupMetadata | None] = {}
        for record in records:
            if isinstance(record, GroupRecord):
                groups[record.group] = record.value
            else:
                offsets.append(record)
        term = Term(partition, leader_epoch)
        for name, value in groups.items():
            if value is not None:
                shard.entries[name] = KnownGroup(self._loaded(name, value, term))
        for record in offsets:
            self._put(shard, record)
        for record in held:
            self._hold(shard, record)
        shard.entries = {
            name: known for name, known in shard.entries.items() if known.offsets or known.held or groups.get(name)
        }
        return True

    def unload(self, partition: int, leader_epoch: int) -> bool:
        """Unload a partition that this broker does not lead any more; False when the request is outdated."""
        unloaded = self._shards.unload(partition, leader_epoch)
        if unloaded:
            self._forget_holders(partition)
        return unloaded

    def _forget_holders(self, partition: int) -> None:
        """Forget which producers hold offsets of these groups (`GroupMetadataManager.removeGroupsForPartition`)."""
        for producer_id, names in list(self.holders.items()):
            names -= {name for name in names if partition_of(name, self.partitions) == partition}
            if not names:
                del self.holders[producer_id]

    # --- groups ---

    def coordinator_error(self, group: str) -> ErrorCode:
        """Return NONE when this broker may serve the group, else why not."""
        return self._shards.coordinator_error(group)

    @property
    def is_loading(self) -> bool:
        """Whether some groups are not loaded yet."""
        return self._shards.is_loading

    def coordinator_epoch(self, group: str) -> int:
        """Return the epoch in which this broker coordinates the group; -1 when it never did."""
        return self._shards.holding(group).leader_epoch

    def group(self, name: str) -> KnownGroup | None:
        """Return a group, even without members or offsets."""
        return self._shards.holding(name).entries.get(name)

    def create_group(self, name: str) -> KnownGroup:
        """Create a group; an existing one stays unchanged."""
        return self._known(self._shards.holding(name), name)

    def remove_group(self, name: str) -> None:
        """Remove a group."""
        self._shards.holding(name).entries.pop(name, None)

    def groups(self) -> list[tuple[str, KnownGroup]]:
        """Return all groups of the partitions that this broker may serve."""
        owned = self._shards.owned()
        return [each for _, shard in owned for each in sorted(shard.entries.items(), key=lambda item: item[0])]

    def members_of(self, partition: int) -> list[Membership]:
        """Return the groups of one partition."""
        return [known.membership for known in self._shards.of(partition).entries.values()]

    # --- offsets ---

    def committed(self, partition: int, records: Iterable[OffsetRecord]) -> None:
        """Apply what `__consumer_offsets` has acknowledged; an older record than the known one changes nothing."""
        shard = self._shards.of(partition)
        if shard.state == "owned":
            for record in records:
                self._put(shard, record)

    # --- offsets of transactions ---

    def hold(self, partition: int, records: Iterable[OffsetRecord]) -> None:
        """Keep a transaction's offsets until it ends; with their log offsets once they are stored."""
        shard = self._shards.of(partition)
        if shard.state == "owned":
            for record in records:
                self._hold(shard, record)

    def stored_held(self, partition: int, records: Iterable[OffsetRecord]) -> None:
        """Set the log offsets of a transaction's offsets, unless it has ended meanwhile."""
        shard = self._shards.of(partition)
        for record in records:
            known = shard.entries.get(record.key.group)
            offsets = known.held.get(record.producer_id, {}) if known else {}
            if (record.key.topic, record.key.partition) in offsets:
                self._hold(shard, record)

    def let_go(self, group: str, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Drop offsets of a transaction that could not be stored."""
        known = self.group(group)
        offsets = known.held.get(producer_id) if known else None
        if known is None or offsets is None:
            return
        for partition in partitions:
            offsets.pop(partition, None)
        if not offsets:
            self._no_longer_holds(known, producer_id)

    def decide(self, producer_id: int, partitions: Iterable[int], *, commits: bool) -> list[OffsetRecord]:
        """End a producer's transaction in these partitions of the topic; return the offsets that count from now on.

        Of a partition the later record counts, in a transaction or not.
        """
        decided = []
        owned = {partition for partition in partitions if self._shards.of(partition).state == "owned"}
        for name in sorted(self.holders.get(producer_id, ())):
            shard = self._shards.holding(name)
            known = shard.entries.get(name)
            if partition_of(name, self.partitions) not in owned or known is None:
                continue
            offsets = known.held.get(producer_id, {})
            self._no_longer_holds(known, producer_id)
            for (topic, partition), entry in sorted(offsets.items()) if commits else ():
                key = OffsetKey(group=name, topic=topic, partition=partition)
                record = OffsetRecord(log_offset=entry.log_offset, key=key, value=entry.value)
                if entry.log_offset != NO_OFFSET and self._put(shard, record):
                    decided.append(record)
        return decided

    def is_unstable(self, group: str, topic: str, partition: int) -> bool:
        """Whether the position of a group may change soon."""
        known = self.group(group)
        return known is not None and known.is_unstable((topic, partition))

    # --- what was committed ---

    def get(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the group's last committed offset."""
        known = self.group(group)
        entry = known.offsets.get((topic, partition)) if known else None
        return entry.value if entry else None

    def offsets_of(self, group: str) -> dict[str, dict[int, CommittedOffset]]:
        """Return all committed offsets of a group, by topic and partition, sorted."""
        known = self.group(group)
        offsets: dict[str, dict[int, CommittedOffset]] = {}
        for (topic, partition), entry in sorted(known.offsets.items()) if known else ():
            offsets.setdefault(topic, {})[partition] = entry.value
        return offsets

    def commits_to(self, partitions: Set[tuple[str, int]]) -> dict[int, list[OffsetKey]]:
        """Return the groups with committed positions in these partitions, by the partition of `__consumer_offsets`."""
        keys: dict[int, list[OffsetKey]] = {}
        for name, known in self.groups():
            for topic, partition in sorted(known.offsets.keys() & partitions):
                key = OffsetKey(group=name, topic=topic, partition=partition)
                keys.setdefault(partition_of(name, self.partitions), []).append(key)
        return keys

    def forget(self, partition: int, keys: Iterable[OffsetKey]) -> None:
        """Drop these positions from memory."""
        groups = self._shards.of(partition).entries
        for key in keys:
            if key.group in groups:
                groups[key.group].offsets.pop((key.topic, key.partition), None)
                for offsets in groups[key.group].held.values():
                    offsets.pop((key.topic, key.partition), None)

    def counts(self, partition: int) -> tuple[int, int]:
        """Return the numbers of groups and offsets in a partition."""
        groups = self._shards.of(partition).entries
        return len(groups), sum(len(known.offsets) for known in groups.values())

    def _known(self, shard: Shard[KnownGroup], name: str) -> KnownGroup:
        known = shard.entries.get(name)
        if known is None:
            term = Term(partition_of(name, self.partitions), shard.leader_epoch)
            group = Group(name=name, term=term, state_since_ms=None)
            known = shard.entries[name] = KnownGroup(Membership(group, self.limits, self.rules))
        return known

    def _loaded(self, name: str, value: GroupMetadata, term: Term) -> Membership:
        if not self.rules.members_outlive_their_coordinator:
            rest = value.members[:-1]
            value = replace(value, members=rest, leader=rest[0].member_id if rest else None)
        return Membership(loaded_group(name, value, term), self.limits, self.rules)

    def _put(self, shard: Shard[KnownGroup], record: OffsetRecord) -> bool:
        """Set a position, unless a later one is known; return whether it counts now."""
        key = record.key
        partition = (key.topic, key.partition)
        known = shard.entries.get(key.group)
        if known is not None and partition in known.offsets:
            if known.offsets[partition].log_offset >= record.log_offset:
                return False
            del known.offsets[partition]
        if record.value is not None:
            entry = Position(log_offset=record.log_offset, value=record.value)
            self._known(shard, key.group).offsets[partition] = entry
        return True

    def _hold(self, shard: Shard[KnownGroup], record: OffsetRecord) -> None:
        key = record.key
        assert record.value is not None, "a transaction takes no offset back"
        known = self._known(shard, key.group)
        entry = Position(log_offset=record.log_offset, value=record.value)
        known.held.setdefault(record.producer_id, {})[key.topic, key.partition] = entry
        self.holders.setdefault(record.producer_id, set()).add(key.group)

    def _no_longer_holds(self, known: KnownGroup, producer_id: int) -> None:
        known.held.pop(producer_id, None)
        holders = self.holders.get(producer_id, set())
        holders.discard(known.membership.group.name)
        if not holders:
            self.holders.pop(producer_id, None)
