"""Lines of the state-change log about a partition's appends, accepted or refused."""

from collections.abc import Iterator
from typing import NamedTuple

from harness.broker.log.batch import BatchHeader, first_header
from harness.broker.log.log import Log
from harness.broker.log.markers import Marker, read_marker
from harness.broker.log.producers import NO_COORDINATOR_EPOCH, NO_PRODUCER_EPOCH, WrittenMarker, last_sequence
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET, Append, BatchRefused, Event, MarkerRefused, TransactionMarker
from harness.values import TopicPartition


class Role(NamedTuple):
    """A broker's role in an append."""

    key: TopicPartition
    role: str
    """leader or follower."""
    leader_epoch: int
    isr_size: int


def appended(role: Role, batch: BatchHeader, acks: int | None) -> Append:
    """Return the line for a batch."""
    key, as_what, leader_epoch, isr_size = role
    return Append(
        topic=key[0],
        partition=key[1],
        role=as_what,
        leader_epoch=leader_epoch,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        batch_epoch=batch.leader_epoch,
        crc=batch.crc,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        isr_size=isr_size,
        acks=acks,
    )


def marked(role: Role, written: WrittenMarker) -> TransactionMarker:
    """Return the line for a marker, which comes after that of its batch."""
    return TransactionMarker(
        topic=role.key[0],
        partition=role.key[1],
        role=role.role,
        leader_epoch=role.leader_epoch,
        offset=written.header.base_offset,
        producer_id=written.header.producer_id,
        producer_epoch=written.header.producer_epoch,
        result=_result(written.marker),
        coordinator_epoch=written.marker.coordinator_epoch,
        first_offset=NO_OFFSET if written.first_offset is None else written.first_offset,
        stable_offset=written.stable_offset,
    )


def refused(role: Role, log: Log, records: bytes, error: ErrorCode) -> Iterator[Event]:
    """Yield the line for a refused batch of a producer with an id, or a refused marker."""
    header = first_header(records)
    if header is None or header.producer_id < 0:
        return
    marker = read_marker(memoryview(records)[: header.size], header) if header.is_control else None
    topic, partition = role.key
    if marker is not None:
        yield _marker_refused(role, log, header, marker, error)
        return
    yield BatchRefused(
        topic=topic,
        partition=partition,
        leader_epoch=role.leader_epoch,
        log_start_offset=log.log_start_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        last_sequence=last_sequence(header),
        error=error,
    )


def _marker_refused(role: Role, log: Log, header: BatchHeader, marker: Marker, error: ErrorCode) -> MarkerRefused:
    known = log.producers.get(header.producer_id)
    return MarkerRefused(
        topic=role.key[0],
        partition=role.key[1],
        leader_epoch=role.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        known_producer_epoch=NO_PRODUCER_EPOCH if known is None else known.epoch,
        result=_result(marker),
        coordinator_epoch=marker.coordinator_epoch,
        known_coordinator_epoch=NO_COORDINATOR_EPOCH if known is None else known.coordinator_epoch,
        error=error,
    )


def _result(marker: Marker) -> str:
    return "commit" if marker.commits else "abort"
