"""A group of consumers: its state, its members, their protocols. Changes of it are in `membership`.

Kafka's `GroupMetadata` and `MemberMetadata`; members are in the order in which they came.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from harness.broker.coordinator.effects import JoinedMember, Ticket
from harness.broker.coordinator.group_records import GroupMetadata, StoredMember
from harness.broker.coordinator.subscription import CONSUMER_PROTOCOL, assigned_partitions, subscribed_topics
from harness.broker.wire.sentinels import NO_EPOCH
from harness.events import (
    AssignedPartition,
    GroupAssignment,
    GroupHeartbeat,
    GroupMember,
    GroupMemberChange,
    GroupStateChange,
    MemberAssignment,
)

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols by name, with its metadata; the preferred one first."""


class GroupState(StrEnum):
    """Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


REBALANCES_FROM = (GroupState.EMPTY, GroupState.COMPLETING, GroupState.STABLE)


@dataclass(slots=True, kw_only=True)
class Member:
    """One member."""

    member_id: str
    instance_id: str | None
    """Of a static member (KIP-345)."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: Ticket | None = None
    """Its waiting JoinGroup."""
    syncing: Ticket | None = None
    """Its waiting SyncGroup."""
    is_new: bool = False
    """Whether it waits for its first generation: it cannot send heartbeats yet."""

    @property
    def must_be_heard_of(self) -> bool:
        """Whether its session may end: not while it waits, unless its presence is unknown."""
        return self.is_new or (self.joining is None and self.syncing is None)

    def metadata(self, protocol: str) -> bytes:
        """Return its metadata for this protocol."""
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def names(self) -> list[str]:
        """Return its protocols' names, the preferred one first."""
        return [name for name, _ in self.protocols]


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """How long an empty group waits for more members."""

    delay_ms: int
    """The part that runs now."""
    remaining_ms: int
    """The part that may follow, if new members come."""


class Term(NamedTuple):
    """This broker's term as coordinator of a group."""

    partition: int
    """Of `__consumer_offsets`, which holds the group."""
    coordinator_epoch: int
    """Its leader epoch."""


NO_TERM = Term(partition=-1, coordinator_epoch=NO_EPOCH)


@dataclass(slots=True, kw_only=True)
class Group:
    """A group in any state."""

    name: str
    term: Term = NO_TERM
    state: GroupState = GroupState.EMPTY
    state_since_ms: int | None
    """Wall clock; None if an old record has none."""
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    """Chosen for this generation."""
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by instance ids."""
    pending_members: set[str] = field(default_factory=set)
    """Ids that were handed out, and with which no member has joined yet (KIP-394)."""
    pending_syncs: set[str] = field(default_factory=set)
    """Members of this generation that have not asked for their assignment."""
    initial_delay: InitialDelay | None = None
    """While an empty group waits for more members."""
    new_member_came: bool = False
    """While it waits: whether it must wait longer."""
    topics: frozenset[str] | None = None
    """Subscribed topics of a consumer group; None if unknown."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance time-out of a member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def session_timeout_ms(self) -> int:
        """The longest session time-out of a member."""
        return max((member.session_timeout_ms for member in self.members.values()), default=0)

    @property
    def joining(self) -> int:
        """How many members wait for the next generation."""
        return sum(member.joining is not None for member in self.members.values())

    def all_have_joined(self) -> bool:
        """Whether the next generation waits for no member."""
        return not self.pending_members and self.joining == len(self.members)

    def subscribes_to(self, topic: str) -> bool:
        """Whether it may consume a topic."""
        return self.topics is None or topic in self.topics

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a client with these protocols has one in common with all members."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        in_common = not self.members or not self.common_protocols().isdisjoint(names)
        return protocol_type == self.protocol_type and bool(names) and in_common

    def common_protocols(self) -> set[str]:
        """Return the protocols that all members have."""
        each = [set(member.names()) for member in self.members.values()]
        return set.intersection(*each) if each else set()

    def elected_protocol(self) -> str:
        """Return the protocol with the most votes; each member votes for its preferred common one."""
        common = self.common_protocols()
        votes = Counter(next(name for name in member.names() if name in common) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member; the first one leads and sets the type of the group."""
        if not self.members:
            self.protocol_type = protocol_type
        self.leader = self.leader or member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member, or a pending one; the oldest remaining one leads then."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)
        return member

    def rename(self, instance_id: str, member_id: str) -> Member:
        """Give a static member another id, in its old place, and return it."""
        old_id = self.static_members[instance_id]
        member = self.members[old_id]
        member.member_id = member_id
        self.members = {each.member_id: each for each in self.members.values()}
        self.static_members[instance_id] = member_id
        if old_id in self.pending_syncs:
            self.pending_syncs.symmetric_difference_update({old_id, member_id})
        if self.leader == old_id:
            self.leader = member_id
        return member

    def elect_joined_leader(self) -> bool:
        """Choose a joined member as leader; False if none has joined."""
        if self.leader is None or self.members[self.leader].joining is None:
            joined = [member.member_id for member in self.members.values() if member.joining is not None]
            if not joined:
                return False
            self.leader = joined[0]
        return True

    def begin_generation(self) -> None:
        """Start the next generation, and choose a protocol."""
        self.generation += 1
        self.protocol = self.elected_protocol() if self.members else None
        self.topics = self._subscribed_topics()
        self.pending_syncs = set(self.members)

    def _subscribed_topics(self) -> frozenset[str] | None:
        protocol = self.protocol
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        return subscribed_topics(member.metadata(protocol) for member in self.members.values() if protocol is not None)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Return the members with their metadata for the protocol of this generation."""
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                metadata=member.metadata(self.protocol) if self.protocol is not None else b"",
            )
            for member in self.members.values()
        )

    def record(self, assignments: Mapping[str, bytes]) -> GroupMetadata:
        """Return the stored form, with these assignments."""
        return GroupMetadata(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            state_since_ms=self.state_since_ms,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol) if self.protocol is not None else b"",
                    assignment=assignments[member.member_id],
                )
                for member in self.members.values()
            ),
        )

    # --- what is told of it ---

    def state_change(self, from_state: str, reason: str) -> GroupStateChange:
        """Return the log line with its present state."""
        return GroupStateChange(
            **self._named(),
            from_state=from_state,
            to_state=self.state.value,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            group_leader=self.leader,
            members=[
                GroupMember(member=member.member_id, instance=member.instance_id) for member in self.members.values()
            ],
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            reason=reason,
        )

    def member_change(
        self, member: Member, change: str, *, old_member: str | None = None, reason: str = ""
    ) -> GroupMemberChange:
        """Return the log line about a change of a member."""
        return GroupMemberChange(
            **self._named(),
            member=member.member_id,
            instance=member.instance_id,
            change=change,
            old_member=old_member,
            reason=reason,
        )

    def heartbeat(self, member: Member) -> GroupHeartbeat:
        """Return the line about an accepted Heartbeat of a member."""
        return GroupHeartbeat(**self._named(), member=member.member_id, session_timeout_ms=member.session_timeout_ms)

    def assignment(self, reason: str) -> GroupAssignment:
        """Return the line with the partitions of each member in this generation."""
        return GroupAssignment(
            **self._named(), reason=reason, assignments=[self._assigned(member) for member in self.members.values()]
        )

    def _assigned(self, member: Member) -> MemberAssignment:
        known = assigned_partitions(member.assignment) if self.protocol_type == CONSUMER_PROTOCOL else None
        return MemberAssignment(
            member=member.member_id,
            instance=member.instance_id,
            partitions=None
            if known is None
            else [AssignedPartition(topic=topic, partition=partition) for topic, partition in known],
        )

    def _named(self) -> dict[str, Any]:
        return {
            "group": self.name,
            "offsets_partition": self.term.partition,
            "coordinator_epoch": self.term.coordinator_epoch,
            "generation": self.generation,
        }


def loaded_group(name: str, record: GroupMetadata, term: Term = NO_TERM) -> Group:
    """Return the group as it was stored."""
    group = Group(
        name=name,
        term=term,
        state=GroupState.STABLE if record.members else GroupState.EMPTY,
        state_since_ms=record.state_since_ms,
        generation=record.generation,
        protocol_type=record.protocol_type or None,
        protocol=record.protocol,
        leader=record.leader,
    )
    for stored in record.members:
        member = Member(
            member_id=stored.member_id,
            instance_id=stored.instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            session_timeout_ms=stored.session_timeout_ms,
            protocols=((record.protocol or "", stored.subscription),),
            assignment=stored.assignment,
        )
        group.add(member, record.protocol_type)
    group.topics = group._subscribed_topics()
    return group
