"""The stored form of a group: its members and more (Kafka's `GroupMetadataKey` and `GroupMetadataValue`)."""

import struct
from dataclasses import dataclass

from harness.broker.coordinator.classic_types import (
    read_bytes,
    read_nullable_text,
    read_text,
    write_bytes,
    write_nullable_text,
    write_text,
)

GROUP_KEY_VERSION = 2
GROUP_VALUE_VERSIONS = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    """A member as it is stored."""

    member_id: str
    instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A group as it is stored."""

    protocol_type: str
    """Empty when the group never had members."""
    generation: int
    protocol: str | None
    leader: str | None
    state_since_ms: int | None
    """Wall clock of the coordinator at the last change of state; None if an old record has none."""
    members: tuple[StoredMember, ...]


def encode_group_key(group: str) -> bytes:
    """Return the key of a group."""
    return struct.pack(">h", GROUP_KEY_VERSION) + write_text(group)


def encode_group_value(value: GroupMetadata) -> bytes:
    """Return a group in version 3."""
    head = struct.pack(">h", 3) + write_text(value.protocol_type) + struct.pack(">i", value.generation)
    since_ms = -1 if value.state_since_ms is None else value.state_since_ms
    agreed = (
        write_nullable_text(value.protocol)
        + write_nullable_text(value.leader)
        + struct.pack(">qi", since_ms, len(value.members))
    )
    return b"".join([head, agreed, *map(_encode_member, value.members)])


def _encode_member(member: StoredMember) -> bytes:
    return b"".join(
        [
            write_text(member.member_id),
            write_nullable_text(member.instance_id),
            write_text(member.client_id),
            write_text(member.client_host),
            struct.pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms),
            write_bytes(member.subscription),
            write_bytes(member.assignment),
        ]
    )


def decode_group_value(data: bytes) -> GroupMetadata:
    """Return a group; before version 1 a member has no rebalance time-out, before 3 no instance id."""
    (version,) = struct.unpack_from(">h", data)
    if version not in GROUP_VALUE_VERSIONS:
        raise ValueError(f"a group of version {version}")
    protocol_type, position = read_text(data, 2)
    (generation,) = struct.unpack_from(">i", data, position)
    protocol, position = read_nullable_text(data, position + 4)
    leader, position = read_nullable_text(data, position)
    since_ms = -1
    if version >= 2:
        (since_ms,) = struct.unpack_from(">q", data, position)
        position += 8
    (count,) = struct.unpack_from(">i", data, position)
    position += 4
    members = []
    for _ in range(count):
        member, position = _read_member(data, position, version)
        members.append(member)
    return GroupMetadata(
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol,
        leader=leader,
        state_since_ms=None if since_ms < 0 else since_ms,
        members=tuple(members),
    )


def _read_member(data: bytes, position: int, version: int) -> tuple[StoredMember, int]:
    member_id, position = read_text(data, position)
    instance_id = None
    if version >= 3:
        instance_id, position = read_nullable_text(data, position)
    client_id, position = read_text(data, position)
    client_host, position = read_text(data, position)
    rebalance_timeout_ms = None
    if version >= 1:
        (rebalance_timeout_ms,) = struct.unpack_from(">i", data, position)
        position += 4
    (session_timeout_ms,) = struct.unpack_from(">i", data, position)
    subscription, position = read_bytes(data, position + 4)
    assignment, position = read_bytes(data, position)
    member = StoredMember(
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )
    return member, position
