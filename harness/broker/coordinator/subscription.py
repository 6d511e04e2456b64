"""The topics that a member of a consumer group subscribes to, and its assignment.

Both are formats of clients; only these parts are read.
"""

import struct
from collections.abc import Iterable

from harness.values import TopicPartition

CONSUMER_PROTOCOL = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all members together; None when one member's subscription is unreadable."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics |= _topics(subscription)
    except (struct.error, ValueError):
        return None
    return frozenset(topics)


def assigned_partitions(assignment: bytes) -> list[TopicPartition] | None:
    """Return the partitions of an assignment, eager or cooperative; None when it is unreadable.

    An assignment without bytes is empty.
    """
    if not assignment:
        return []
    try:
        return _partitions(assignment)
    except (struct.error, ValueError):
        return None


def _topics(data: bytes) -> set[str]:
    """Return the topics of one subscription, in version 0, which is the start of every later version."""
    count, position = _count(data, 2)
    topics = set()
    for _ in range(count):
        topic, position = _topic(data, position)
        topics.add(topic)
    return topics


def _partitions(data: bytes) -> list[TopicPartition]:
    """Return the partitions of one assignment, in version 0, which is the start of every later version."""
    partitions = []
    topics, position = _count(data, 2)
    for _ in range(topics):
        topic, position = _topic(data, position)
        count, position = _count(data, position)
        partitions += [(topic, number) for number in struct.unpack_from(f">{count}i", data, position)]
        position += 4 * count
    return partitions


def _count(data: bytes, position: int) -> tuple[int, int]:
    """Return the number of elements, and where they begin."""
    (count,) = struct.unpack_from(">i", data, position)
    if not 0 <= count <= len(data):
        raise ValueError(f"{count} things in {len(data)} bytes")
    return count, position + 4


def _topic(data: bytes, position: int) -> tuple[str, int]:
    """Return the name of a topic, and where it ends."""
    (length,) = struct.unpack_from(">h", data, position)
    position += 2
    if not 0 <= length <= len(data) - position:
        raise ValueError(f"a topic of {length} bytes where {len(data) - position} are left")
    return data[position : position + length].decode(), position + length
