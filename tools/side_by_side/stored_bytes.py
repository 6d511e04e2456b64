"""The bytes of a record of `__consumer_offsets`, without what differs each time: ids, times, and where a client was.

They are compared as they are, so the writer must have put every field where Kafka puts it.
"""

import struct
from collections.abc import Mapping
from hashlib import blake2b

from harness.broker.coordinator.classic_types import write_text
from harness.broker.coordinator.group_records import GroupMetadata
from harness.broker.coordinator.records import OffsetRecord

SHOWN_BYTES = 200
"""What is longer stands by its digest."""
NO_TIME = bytes(8)


def version_of(data: bytes) -> int:
    """Return the version with which a key or a value begins."""
    return int(struct.unpack_from(">h", data)[0])


def in_short(data: bytes) -> str:
    """Return bytes in hexadecimal digits, or how many there are and their digest."""
    return data.hex() if len(data) <= SHOWN_BYTES else f"{len(data)}:{blake2b(data, digest_size=16).hexdigest()}"


def masked_offset(value: bytes, record: OffsetRecord) -> bytes:
    """Return an offset's value without its times."""
    assert record.value is not None
    for time_ms in (record.value.timestamp_ms, record.value.expires_ms):
        if time_ms is not None:
            value = value.replace(struct.pack(">q", time_ms), NO_TIME)
    return value


def masked_group(value: bytes, group: GroupMetadata, names: Mapping[str, str]) -> bytes:
    """Return a group's value with names for ids, and members in the order of the names, as theirs is by chance."""
    count = struct.pack(">i", len(group.members))
    since = struct.pack(">q", -1 if group.state_since_ms is None else group.state_since_ms)
    head_size = value.index(since + count) + len(since + count)
    head = value[:head_size].replace(since + count, NO_TIME + count)
    if group.leader is not None:
        head = head.replace(write_text(group.leader), write_text(names.get(group.leader, "")))
    starts = []
    position = head_size
    for member in group.members:
        position = value.index(write_text(member.member_id), position)
        starts.append(position)
        position += 1
    chunks = []
    for member, start, end in zip(group.members, starts, [*starts, len(value)][1:], strict=True):
        own = value[start:end].replace(write_text(member.member_id), write_text(names[member.member_id]), 1)
        chunks.append(own.replace(write_text(member.client_host), write_text("/"), 1))
    assert value[head_size : starts[0] if starts else len(value)] == b""
    return head + b"".join(sorted(chunks))
