"""What coordinators know of groups and transactions, beside what the next coordinators would read."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.broker.coordinator.group import GroupState
from harness.broker.coordinator.placement import partition_of
from harness.broker.coordinator.replay import GroupReplay
from harness.broker.coordinator.store import GroupStore, KnownGroup, Position
from harness.broker.log.log import Log
from harness.broker.server import Broker
from harness.broker.transactions.metadata import TransactionMetadata
from harness.broker.transactions.records import decode_chunk
from harness.broker.transactions.replay import TransactionReplay
from harness.events import NO_LEADER, NO_OFFSET
from harness.simulation.rest.truth import Truth
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

_CHUNK_BYTES = 1 << 20


def of_groups(broker: Broker) -> Iterator[str]:
    """Yield the groups whose offsets or members the next coordinator would not have.

    It may have more than this one: an offset, or its end, that is in the log although its acks came too late.
    """
    assert broker.coordinator is not None
    store = broker.coordinator.store
    for number, epoch in store.owned:
        partition = broker.replicas.replicas.get(OFFSETS_TOPIC, number)
        if partition is None or not partition.is_leader:
            continue
        replay = GroupReplay(store.rules)
        _read(partition.log, replay.take)
        if {record.producer_id for record in replay.held} != set(partition.log.producers.open_transactions.values()):
            yield f"open transactions of {OFFSETS_TOPIC}-{number}, and those whose offsets wait"
        anew = GroupStore(store.partitions, store.limits, store.rules)
        anew.begin_load(number, epoch)
        anew.finish_load(number, epoch, replay.records, replay.held)
        for name, known in store.groups():
            if partition_of(name, store.partitions) == number and not known.under_way:
                for what in _of_group(known, anew.create_group(name)):
                    yield f"group {name}: {what}"


def _of_group(known: KnownGroup, read: KnownGroup) -> Iterator[str]:
    if not _within(known.offsets, read.offsets):
        yield "offsets"
    if not all(_within(offsets, read.held.get(producer, {})) for producer, offsets in known.held.items()):
        yield "offsets of open transactions"
    group, other = known.membership.group, read.membership.group
    if group.state is GroupState.STABLE:  # else a record may be missing: a failed append is not tried again
        if other.generation < group.generation:
            yield "generation"
        elif other.generation > group.generation:
            return
        elif other.members.keys() != group.members.keys() or other.static_members != group.static_members:
            yield "members"
        elif any(other.members[name].assignment != each.assignment for name, each in group.members.items()):
            yield "assignments"
        elif (other.leader, other.protocol) != (group.leader, group.protocol):
            yield "leader or protocol"


def _within(known: Mapping[TopicPartition, Position], read: Mapping[TopicPartition, Position]) -> bool:
    """Return whether each stored position is in the log, or a later one."""
    stored = {key: each for key, each in known.items() if each.log_offset != NO_OFFSET}
    return all(
        key in read and (read[key] == each or read[key].log_offset > each.log_offset) for key, each in stored.items()
    )


def of_transactions(broker: Broker, truth: Truth) -> Iterator[str]:
    """Yield the transactional ids whose state is not in the log, would be read as another one, or does not go on.

    The log may have a later state, if its acks came too late.
    """
    assert broker.transactions is not None
    transactions = broker.transactions
    for number, shard in transactions.shards.owned():
        partition = broker.replicas.replicas.get(TRANSACTIONS_TOPIC, number)
        if partition is None or not partition.is_leader:
            continue
        replay, stored = TransactionReplay(number), _stored(partition.log)
        _read(partition.log, replay.take)
        if replay.latest != {name: states[-1] for name, states in stored.items() if states[-1] is not None}:
            yield f"the last states in {TRANSACTIONS_TOPIC}-{number}"
        for name, known in sorted(shard.entries.items()):
            busy = name in transactions.storing or known.pending is not None
            if not busy and _state(known.metadata) not in map(_state, stored.get(name, ())):
                yield f"transactional id {name}: {known.metadata.state} is not stored"
            led = all(
                key not in truth.states or truth.states[key].state.leader != NO_LEADER
                for key in known.metadata.partitions
            )
            if known.metadata.state.is_prepared and led:
                yield f"transactional id {name}: its markers are not written"


def _stored(log: Log) -> dict[str, list[TransactionMetadata | None]]:
    """Return all states of each transactional id that a log has; None for a tombstone."""
    states: dict[str, list[TransactionMetadata | None]] = {}

    def take(data: bytes) -> int:
        chunk = decode_chunk(data)
        for record in chunk.records:
            states.setdefault(record.transactional_id, []).append(record.value)
        return chunk.next_offset

    _read(log, take)
    return states


def _state(metadata: TransactionMetadata | None) -> tuple[Any, ...] | None:
    if metadata is None:
        return None
    return (
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state,
        metadata.timeout_ms,
        None if metadata.state.is_idle else metadata.started_ms,
    )


def _read(log: Log, take: Callable[[bytes], int]) -> None:
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end and (data := log.read(offset, max_bytes=_CHUNK_BYTES, up_to=end, at_least_one=True)):
        offset = take(data)
