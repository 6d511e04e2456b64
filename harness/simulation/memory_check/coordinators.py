"""Groups and transactions of coordinators, compared with what the next coordinators would load."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.broker.coordinator.records import OffsetRecord
from harness.broker.coordinator.replay import GroupReplay
from harness.broker.coordinator.store import GroupStore, KnownGroup, Position
from harness.broker.log.log import Log
from harness.broker.server import Broker
from harness.broker.transactions.metadata import NO_PRODUCER_EPOCH, TransactionMetadata
from harness.broker.transactions.records import decode_chunk
from harness.broker.transactions.replay import TransactionReplay
from harness.broker.transactions.transaction import Transaction
from harness.events import NO_LEADER, NO_OFFSET
from harness.kafka.placement import partition_of
from harness.simulation.memory_check.znodes import Znodes
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

_CHUNK_BYTES = 1 << 20


def of_groups(broker: Broker, znodes: Znodes) -> Iterator[str]:
    """Yield the groups whose offsets the next coordinator would not have.

    The log may have a later offset or a tombstone that was acknowledged after the time-out.
    """
    assert broker.coordinator is not None
    store = broker.coordinator.store
    for number, epoch in store.owned:
        log = _led(broker, znodes, OFFSETS_TOPIC, number)
        if log is None:
            continue
        replay = GroupReplay(store.rules)
        _read(log, replay.take)
        if {record.producer_id for record in replay.held} != set(log.producers.open_transactions.values()):
            yield f"{OFFSETS_TOPIC}-{number}: producers with open transactions"
        stored = {each.key: each.log_offset for each in replay.records if isinstance(each, OffsetRecord)}
        loaded = GroupStore(store.partitions, store.limits, store.rules)
        loaded.begin_load(number, epoch)
        loaded.finish_load(number, epoch, replay.records, replay.held)
        for name, known in store.groups():
            if partition_of(name, store.partitions) == number and not known.under_way:
                last = {(key.topic, key.partition): offset for key, offset in stored.items() if key.group == name}
                for what in _of_group(known, loaded.create_group(name), last):
                    yield f"group {name}: {what}"


def _of_group(known: KnownGroup, read: KnownGroup, last: Mapping[TopicPartition, int]) -> Iterator[str]:
    current = {key: each for key, each in known.offsets.items() if last.get(key, NO_OFFSET) <= each.log_offset}
    if not _within(current, read.offsets):
        yield "offsets"
    if not all(_within(offsets, read.held.get(producer, {})) for producer, offsets in known.held.items()):
        yield "offsets of open transactions"


def _within(known: Mapping[TopicPartition, Position], read: Mapping[TopicPartition, Position]) -> bool:
    """Return whether each position that is stored is read."""
    return all(read.get(key) == each for key, each in known.items() if each.log_offset != NO_OFFSET)


def of_transactions(broker: Broker, znodes: Znodes) -> Iterator[str]:
    """Yield the transactional ids whose state is not in the log or would be loaded as another one, or that never end.

    The log may have a later state that was acknowledged after the time-out, and a cleaner removes earlier states.
    """
    assert broker.transactions is not None
    transactions = broker.transactions
    for number, shard in transactions.shards.owned():
        log = _led(broker, znodes, TRANSACTIONS_TOPIC, number)
        if log is None:
            continue
        replay, stored = TransactionReplay(number), _stored(log)
        _read(log, replay.take)
        if replay.latest != {name: states[-1] for name, states in stored.items() if states[-1] is not None}:
            yield f"{TRANSACTIONS_TOPIC}-{number}: last states"
        for name, known in sorted(shard.entries.items()):
            if name in transactions.storing or _is_unstored(known):
                continue
            if log.cleaned_to is None and _state(known.metadata) not in map(_state, stored.get(name, ())):
                yield f"transactional id {name}: {known.metadata.state} is not stored"
            if name not in transactions.markers.fenced and _may_end(known.metadata, znodes):
                yield f"transactional id {name}: its markers are not written"


def _led(broker: Broker, znodes: Znodes, topic: str, number: int) -> Log | None:
    """Return the log of a partition that a broker leads by ZooKeeper too."""
    partition, known = broker.replicas.replicas.get(topic, number), znodes.states.get((topic, number))
    if partition is None or known is None:
        return None
    here = (partition.leader, partition.leader_epoch) == (known.state.leader, known.state.leader_epoch)
    return partition.log if here and partition.is_leader else None


def _is_unstored(transaction: Transaction) -> bool:
    """Return whether the next state is being stored, or the first or a fencing one could not be."""
    first = transaction.metadata.producer_epoch == NO_PRODUCER_EPOCH
    return first or transaction.pending is not None or transaction.fence_failed


def _may_end(metadata: TransactionMetadata, znodes: Znodes) -> bool:
    """Return whether a transaction is decided, and each of its partitions has a leader or is gone."""
    states = [znodes.states.get(key) for key in metadata.partitions]
    led = all(state is None or state.state.leader != NO_LEADER for state in states)
    return metadata.state.is_prepared and led and not any(topic in znodes.deleting for topic, _ in metadata.partitions)


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
