"""The requests of a fetching follower or client, built from plain values."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from harness.broker.replicas.fetch_sessions import FINAL_EPOCH, NO_SESSION
from harness.broker.wire.messages import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from harness.events import NO_OFFSET
from harness.values import TopicPartition

FETCH_VERSION = 11
OFFSET_FOR_LEADER_EPOCH_VERSION = 3
LIST_OFFSETS_VERSION = 5
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels of a request."""


class PartitionRequest(NamedTuple):
    """One partition in a request: its leader epoch, and an offset, an epoch or a timestamp."""

    key: TopicPartition
    current_leader_epoch: int
    value: int
    log_start_offset: int = NO_OFFSET
    """In a fetch: where the follower's own log starts."""


def _by_topic(partitions: Sequence[PartitionRequest]) -> Iterator[tuple[str, list[PartitionRequest]]]:
    for topic, group in groupby(partitions, key=lambda each: each.key[0]):
        yield topic, list(group)


class Limits(NamedTuple):
    """A leader's limits: wait, bytes to wait for, and bytes to answer, in all and of each partition."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


class Difference(NamedTuple):
    """A fetch within its session (KIP-227): the session, its epoch, and the changes."""

    session_id: int
    session_epoch: int
    changed: Sequence[PartitionRequest]
    """Those of a topic that stand together are one entry of the request."""
    forgotten: Sequence[TopicPartition]


def without_session(partitions: Sequence[PartitionRequest]) -> Difference:
    """Return a fetch without a session."""
    return Difference(NO_SESSION, FINAL_EPOCH, partitions, ())


def fetch_request(
    replica_id: int, limits: Limits, difference: Difference, isolation_level: int = READ_UNCOMMITTED
) -> FetchRequest:
    """Return a fetch with its session's changes."""
    topic_type = FetchRequest.FetchTopic
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=isolation_level,
        session_id=difference.session_id,
        session_epoch=difference.session_epoch,
        topics=[
            topic_type(
                topic=topic,
                partitions=[
                    topic_type.FetchPartition(
                        partition=each.key[1],
                        current_leader_epoch=each.current_leader_epoch,
                        fetch_offset=each.value,
                        log_start_offset=each.log_start_offset,
                        partition_max_bytes=limits.partition_max_bytes,
                    )
                    for each in group
                ],
            )
            for topic, group in _by_topic(difference.changed)
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic=topic, partitions=[partition])
            for topic, partition in difference.forgotten
        ],
    )


def offset_for_leader_epoch_request(
    replica_id: int, partitions: Sequence[PartitionRequest]
) -> OffsetForLeaderEpochRequest:
    """Return a request for the ends of epochs; `partitions` are sorted by topic."""
    topic_type = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    return OffsetForLeaderEpochRequest(
        replica_id=replica_id,
        topics=[
            topic_type(
                topic=topic,
                partitions=[
                    topic_type.OffsetForLeaderPartition(
                        partition=each.key[1],
                        current_leader_epoch=each.current_leader_epoch,
                        leader_epoch=each.value,
                    )
                    for each in group
                ],
            )
            for topic, group in _by_topic(partitions)
        ],
    )


def list_offsets_request(
    replica_id: int, partition: PartitionRequest, isolation_level: int = READ_UNCOMMITTED
) -> ListOffsetsRequest:
    """Return a request for the latest or earliest offset of one partition."""
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[
            topic_type(
                name=partition.key[0],
                partitions=[
                    topic_type.ListOffsetsPartition(
                        partition_index=partition.key[1],
                        current_leader_epoch=partition.current_leader_epoch,
                        timestamp=partition.value,
                    )
                ],
            )
        ],
    )
