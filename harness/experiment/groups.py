"""Consumer groups of a cluster, their members, and their lag, as text for a person."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from harness.errors import ClusterError
from harness.events import NO_OFFSET
from harness.progress import number_of

log = logging.getLogger(__name__)

_TIMEOUT: dict[str, Any] = {"request_timeout": 10.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A group's position in one partition."""

    topic: str
    partition: int
    offset: int | None
    """Committed offset; None if nothing was committed there."""
    end: int | None
    """End of the partition for consumers; None if unknown."""
    member: str
    """Member that owns the partition; empty if none does."""

    @property
    def lag(self) -> int | None:
        """Number of offsets behind the end."""
        return None if self.offset is None or self.end is None else max(self.end - self.offset, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group."""

    group: str
    state: str
    coordinator: int
    """Broker id."""
    assignor: str
    members: tuple[str, ...]
    positions: tuple[Position, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON types, with each position's lag."""
        positions = [asdict(position) | {"lag": position.lag} for position in self.positions]
        return asdict(self) | {"positions": positions}


def groups_of(bootstrap_servers: str) -> list[GroupView]:
    """Return all groups of a cluster by name.

    Raises:
        ClusterError: it does not answer.
    """
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "client.id": "harness"}, logger=log)
    try:
        names = sorted(each.group_id for each in client.list_consumer_groups(**_TIMEOUT).result().valid)
        if not names:
            return []
        described = client.describe_consumer_groups(names, **_TIMEOUT)
        return [_view(client, described[name].result()) for name in names]
    except KafkaException as error:
        raise ClusterError(f"the cluster does not list its groups: {error.args[0].str()}") from error


def _view(client: AdminClient, group: Any) -> GroupView:
    owners = {
        (each.topic, each.partition): member.member_id
        for member in group.members
        for each in (member.assignment.topic_partitions if member.assignment else ())
    }
    (answer,) = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group.group_id)], **_TIMEOUT).values()
    committed = {(each.topic, each.partition): each.offset for each in answer.result().topic_partitions}
    partitions = sorted({*owners, *committed})
    ends = _ends(client, partitions)
    return GroupView(
        group=group.group_id,
        state=group.state.name,
        coordinator=group.coordinator.id,
        assignor=group.partition_assignor,
        members=tuple(member.member_id for member in group.members),
        positions=tuple(
            Position(
                topic=topic,
                partition=partition,
                offset=_known(committed.get((topic, partition), NO_OFFSET)),
                end=ends.get((topic, partition)),
                member=owners.get((topic, partition), ""),
            )
            for topic, partition in partitions
        ),
    )


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset


def _ends(client: AdminClient, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the ends of partitions; deleted ones are left out."""
    ends = {}
    to_end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    latest = {TopicPartition(topic, partition): to_end for topic, partition in partitions}
    for partition, answer in (client.list_offsets(latest, **_TIMEOUT) if latest else {}).items():
        try:
            ends[partition.topic, partition.partition] = answer.result().offset
        except KafkaException as error:
            log.info("ends.unknown topic=%s partition=%d error=%s", partition.topic, partition.partition, error)
    return ends


def lines_of(groups: Sequence[GroupView]) -> list[str]:
    """Return the groups as text for a person."""
    lines: list[str] = []
    for group in groups:
        lines.append(
            f"group {group.group}  {group.state}  coordinator {group.coordinator}"
            f"  {number_of(len(group.members), 'member')}" + (f"  {group.assignor}" if group.assignor else "")
        )
        lines += [_line(position) for position in group.positions]
    return lines


def _line(position: Position) -> str:
    offset, end, lag = ("-" if each is None else each for each in (position.offset, position.end, position.lag))
    where = f"{position.topic}-{position.partition}"
    return f"  {where}  at {offset} of {end}  lag {lag}  {position.member or 'no member'}"
