"""What is dumped of the transactions in one replica's log in the model of a cluster."""

from typing import TYPE_CHECKING, Any

from harness.store.history import AbortedEntry, ProducerEntry, StoredBatch, StoredMarker, StoredTransition
from tests.analysis.model_evidence import Evidence
from tests.analysis.model_log import NONE, Entry, Replica

if TYPE_CHECKING:
    from tests.analysis.model_cluster import Partition

TIMEOUT_MS = 60_000


def dump_transactions(out: Evidence, broker: int, partition: "Partition", replica: Replica) -> None:
    """Write the lines about transactions of one replica."""
    begun: dict[int, int] = {}
    named: dict[str, Any] = {"broker": broker, **partition.names}
    for offset, entry in enumerate(replica.log):
        written = {**named, "leader_epoch": entry.epoch, "timestamp_ms": 0, "producer_id": entry.producer_id}
        if entry.transition:
            out.dump_transaction(_transition(written, offset, entry))
        elif entry.marker:
            first = begun.pop(entry.producer_id, NONE)
            out.dump_transaction(
                StoredMarker(
                    **written,
                    offset=offset,
                    producer_epoch=0,
                    result=entry.marker,
                    coordinator_epoch=entry.coordinator_epoch,
                )
            )
            if entry.marker == "abort" and first != NONE:
                aborted: dict[str, Any] = {
                    "producer_id": entry.producer_id,
                    "first_offset": first,
                    "last_offset": offset,
                }
                stable = min(begun.values(), default=offset + 1)
                out.dump_transaction(AbortedEntry(**named, **aborted, segment=0, last_stable_offset=stable))
        elif entry.transactional:
            begun.setdefault(entry.producer_id, offset)
            place: dict[str, Any] = {"first_offset": offset, "last_offset": offset, "first_sequence": entry.sequence}
            out.dump_transaction(StoredBatch(**written, **place, producer_epoch=0))
    _snapshot(out, named, replica)


def _transition(written: dict[str, Any], offset: int, entry: Entry) -> StoredTransition:
    return StoredTransition(
        **written | {"producer_id": entry.of_producer},
        offset=offset,
        transactional_id=entry.key,
        state=entry.transition,
        producer_epoch=0,
        timeout_ms=TIMEOUT_MS,
        started_ms=0,
        transaction_version=0,
        partitions=entry.value.split(),
    )


def _snapshot(out: Evidence, named: dict[str, Any], replica: Replica) -> None:
    """Write the snapshot that a broker takes at the end of a log."""
    entries = [(offset, entry) for offset, entry in enumerate(replica.log) if entry.transactional or entry.marker]
    for producer_id in dict.fromkeys(entry.producer_id for _, entry in entries):
        own = [(offset, entry) for offset, entry in entries if entry.producer_id == producer_id]
        data = [(offset, entry) for offset, entry in own if entry.transactional]
        markers = [(offset, entry) for offset, entry in own if entry.marker]
        last_marker = markers[-1][0] if markers else NONE
        out.dump_transaction(
            ProducerEntry(
                **named,
                snapshot_offset=replica.end,
                producer_id=producer_id,
                producer_epoch=0,
                last_sequence=data[-1][1].sequence if data else NONE,
                last_offset=data[-1][0] if data else NONE,
                offset_delta=0,
                timestamp_ms=0,
                coordinator_epoch=markers[-1][1].coordinator_epoch if markers else NONE,
                transaction_first_offset=min((offset for offset, _ in data if offset > last_marker), default=NONE),
            )
        )
