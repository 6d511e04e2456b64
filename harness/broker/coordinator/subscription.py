"""Which topics does a member of a consumer group subscribe to? Its metadata is the client's; only this is looked at."""

import struct
from collections.abc import Iterable

CONSUMER_PROTOCOL = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all members together; None when one of them says nothing that can be understood."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics |= _topics(subscription)
    except (struct.error, ValueError):
        return None
    return frozenset(topics)


def _topics(data: bytes) -> set[str]:
    """Return the topics of one subscription, in version 0, which every later version begins with."""
    _version, count = struct.unpack_from(">hi", data)
    position = 6
    if not 0 <= count <= len(data):
        raise ValueError(f"{count} topics in {len(data)} bytes")
    topics = set()
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, position)
        position += 2
        if not 0 <= length <= len(data) - position:
            raise ValueError(f"a topic of {length} bytes where {len(data) - position} are left")
        topics.add(data[position : position + length].decode())
        position += length
    return topics
