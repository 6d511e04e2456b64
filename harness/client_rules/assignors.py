"""Which member gets which partitions: Kafka's `RangeAssignor` and `CooperativeStickyAssignor`, and their bytes.

The member that leads a generation assigns. All members of a group subscribe to the same topics here, so of the sticky
assignor this is the part for equal subscriptions. Subscriptions and assignments are as Kafka's `ConsumerProtocol` has
them, in the version of 3.9's clients.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.broker.coordinator.classic_types import read_text, write_nullable_text, write_text
from harness.values import TopicPartition

_SUBSCRIPTION_VERSION = 3
_ASSIGNMENT_VERSION = 3
_NO_BYTES = struct.pack(">i", -1)

_CONTESTED = ""
"""Marks a partition with two owners."""

Assignments = dict[str, list[TopicPartition]]
"""By member id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member's data in its join request."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """Partitions it keeps until they are assigned to another member (KIP-429)."""
    generation: int = -1
    """Generation of that assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A member that takes part in an assignment."""

    member_id: str
    instance_id: str | None = None
    subscription: Subscription

    @property
    def rank(self) -> tuple[bool, str]:
        """Static members come first, by instance."""
        return self.instance_id is None, self.instance_id or self.member_id


Assignor = Callable[[Sequence[Candidate], Mapping[str, int]], Assignments]
"""Returns each member's partitions, given the topics with their numbers of partitions."""


def by_range(candidates: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignments:
    """Give each member a range of each topic; the first members get one more if the division leaves a remainder."""
    assigned: Assignments = {each.member_id: [] for each in candidates}
    for topic, count in sorted(partitions.items()):
        takers = sorted((each for each in candidates if topic in each.subscription.topics), key=lambda each: each.rank)
        position = 0
        for place, taker in enumerate(takers):
            share = count // len(takers) + (place < count % len(takers))
            assigned[taker.member_id] += [(topic, number) for number in range(position, position + share)]
            position += share
    return assigned


def cooperative_sticky(candidates: Sequence[Candidate], partitions: Mapping[str, int]) -> Assignments:
    """Leave each member its partitions, up to its share; a partition moves only after its owner gave it up."""
    everything = [(topic, number) for topic, count in sorted(partitions.items()) for number in range(count)]
    owners = _owners(candidates)
    assigned: Assignments = {each.member_id: [] for each in candidates}
    for partition in everything:
        if (owner := owners.get(partition, _CONTESTED)) != _CONTESTED:
            assigned[owner].append(partition)
    least, more = divmod(len(everything), len(candidates))
    for member_id in sorted(assigned):
        has_more = more > 0 and len(assigned[member_id]) > least
        more -= has_more
        del assigned[member_id][least + has_more :]
    retained = {partition for each in assigned.values() for partition in each}
    left = deque(partition for partition in everything if partition not in retained)
    even = [each for each in sorted(assigned) if len(assigned[each]) == least]
    while left and (short := [each for each in sorted(assigned) if len(assigned[each]) < least]):
        for member_id in short[: len(left)]:
            assigned[member_id].append(left.popleft())
            even += [member_id] if len(assigned[member_id]) == least else []
    for member_id, partition in zip(even, left, strict=False):
        assigned[member_id].append(partition)
    return {
        member_id: [each for each in share if owners.get(each, member_id) == member_id]
        for member_id, share in assigned.items()
    }


def _owners(candidates: Sequence[Candidate]) -> dict[TopicPartition, str]:
    """Return the owner of each partition: the latest generation wins; two claims of one generation cancel out."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for each in candidates:
        for partition in each.subscription.owned:
            claims.setdefault(partition, []).append((each.subscription.generation, each.member_id))
    owners = {}
    for partition, of_partition in claims.items():
        latest = max(generation for generation, _ in of_partition)
        latest_owners = [member_id for generation, member_id in of_partition if generation == latest]
        owners[partition] = latest_owners[0] if len(latest_owners) == 1 else _CONTESTED
    return owners


ASSIGNORS: dict[str, Assignor] = {"range": by_range, "cooperative-sticky": cooperative_sticky}


def encoded_subscription(subscription: Subscription) -> bytes:
    """Return the bytes of a member's subscription."""
    topics = b"".join(map(write_text, subscription.topics))
    return b"".join(
        (
            struct.pack(">hi", _SUBSCRIPTION_VERSION, len(subscription.topics)),
            topics,
            _NO_BYTES,
            _encoded_partitions(subscription.owned),
            struct.pack(">i", subscription.generation),
            write_nullable_text(None),
        )
    )


def decoded_subscription(data: bytes) -> Subscription:
    """Return a member's subscription; fields of versions later than its own have their defaults."""
    version, count = struct.unpack_from(">hi", data)
    position, topics = 6, []
    for _ in range(count):
        topic, position = read_text(data, position)
        topics.append(topic)
    (length,) = struct.unpack_from(">i", data, position)
    position += 4 + max(0, length)
    owned: tuple[TopicPartition, ...] = ()
    if version >= 1:
        owned, position = _decoded_partitions(data, position)
    generation = struct.unpack_from(">i", data, position)[0] if version >= 2 else -1
    return Subscription(topics=tuple(topics), owned=owned, generation=generation)


def encoded_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Return the bytes of a member's assignment."""
    return struct.pack(">h", _ASSIGNMENT_VERSION) + _encoded_partitions(partitions) + _NO_BYTES


def decoded_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Return a member's assignment; empty bytes are no partition."""
    return _decoded_partitions(data, 2)[0] if data else ()


def _encoded_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    parts = [struct.pack(">i", len(by_topic))]
    for topic, numbers in by_topic.items():
        parts.append(write_text(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(parts)


def _decoded_partitions(data: bytes, position: int) -> tuple[tuple[TopicPartition, ...], int]:
    (topics,) = struct.unpack_from(">i", data, position)
    position += 4
    partitions: list[TopicPartition] = []
    for _ in range(topics):
        topic, position = read_text(data, position)
        (count,) = struct.unpack_from(">i", data, position)
        partitions += [(topic, number) for number in struct.unpack_from(f">{count}i", data, position + 4)]
        position += 4 + 4 * count
    return tuple(partitions), position
