"""What do the records of the metadata log say? Those that are of use here, decoded by Kafka's specifications."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kafka.protocol.api_data import ApiData
from kafka.protocol.api_message import ApiMessage

from harness.broker.log.batch import Buffer, crc_matches, iter_batches, parse_records
from harness.broker.log.records import Record
from harness.broker.wire.messages import RESPONSES
from harness.errors import EvidenceError
from harness.kraft import specs


class RegisterBrokerRecord(ApiData, load_json=specs):
    """A process of a broker is known; at first it is fenced."""


class UnregisterBrokerRecord(ApiData, load_json=specs):
    """A broker is no part of the cluster any more."""


class FenceBrokerRecord(ApiData, load_json=specs):
    """A broker may not lead: its session has ended."""


class UnfenceBrokerRecord(ApiData, load_json=specs):
    """A broker may lead."""


class BrokerRegistrationChangeRecord(ApiData, load_json=specs):
    """A broker is fenced, is not any more, or stops in order."""


class TopicRecord(ApiData, load_json=specs):
    """A topic is created."""


class RemoveTopicRecord(ApiData, load_json=specs):
    """A topic is gone, with its partitions."""


class PartitionRecord(ApiData, load_json=specs):
    """A partition is created."""


class PartitionChangeRecord(ApiData, load_json=specs):
    """What is different now of a partition."""


class ConfigRecord(ApiData, load_json=specs):
    """A property is set, or taken back where its value is null."""


class ProducerIdsRecord(ApiData, load_json=specs):
    """A broker has a block of producer ids."""


class ClearElrRecord(ApiData, load_json=specs):
    """No replica outside the ISR may lead, for one topic or for all (KIP-966)."""


class FetchSnapshotRequest(ApiMessage, load_json=specs):
    """Asks a controller for a part of a snapshot."""


class FetchSnapshotResponse(ApiMessage, load_json=specs):
    """Has the bytes of a snapshot from a position on."""


SNAPSHOT_REQUEST: Any = FetchSnapshotRequest
SNAPSHOT_RESPONSE: Any = FetchSnapshotResponse
"""The same for type checkers, which know no fields of messages that kafka-python does not have."""
RESPONSES[FetchSnapshotResponse.API_KEY] = FetchSnapshotResponse


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """The control record with which the leader of an epoch begins it (LeaderChangeMessage)."""

    leader_id: int


class SnapshotEnd:
    """The control record with which a snapshot ends (SnapshotFooterRecord)."""


class Bound(IntEnum):
    """Records that make others count only together (KIP-868), by Kafka's numbers; nothing in them is read."""

    BEGIN = 23
    END = 24
    ABORT = 25


KINDS: dict[int, type[ApiData]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    28: ClearElrRecord,
}
"""By the number that Kafka gives the kind."""
IGNORED = frozenset({10, 11, 12, 14, 18, 19, 20, 21, 22, 26, 27, 29})
"""Tokens, credentials, features, quotas, access, no operation, migration, controllers: of these nothing is read."""
LEADER_CHANGE, SNAPSHOT_FOOTER = 2, 4
IGNORED_CONTROL = frozenset({3, 5, 6})
"""SnapshotHeader, KRaftVersion and Voters; the voters are those that the harness started."""
_BOUNDS = {each.value for each in Bound}
_FRAME = 1
_CONTROL = struct.Struct(">hh")
"""Key of a control record: version and kind."""
_LEADER = struct.Struct(">hi")
"""How a LeaderChangeMessage of any version begins: its version, the leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataEntry:
    """One record of the metadata log."""

    offset: int
    epoch: int
    """Of the controller that wrote it."""
    time_ms: int
    """That controller's wall clock."""
    record: Any
    """A record of `KINDS`, a Bound, a LeaderChange or a SnapshotEnd; None for one that is ignored."""


def entries(data: Buffer) -> Iterator[list[MetadataEntry]]:
    """Yield the records of every whole batch; a last one that is cut short is left out.

    Raises:
        EvidenceError: a batch or a record is not what it should be; says at which offset.
    """
    offset = -1
    try:
        for header, batch in iter_batches(data):
            offset = header.base_offset
            if not crc_matches(batch, header):
                raise ValueError("a batch with a wrong CRC")
            decode = _control if header.is_control else _metadata
            yield [
                MetadataEntry(
                    offset=each.offset, epoch=header.leader_epoch, time_ms=each.timestamp_ms, record=decode(each)
                )
                for each in parse_records(batch)
            ]
    except (ValueError, IndexError, struct.error) as error:
        raise EvidenceError(f"the metadata log at offset {offset}: {error}") from error


def _metadata(record: Record) -> Any:
    """Return what follows the frame: its version, then kind and version of the record, all unsigned varints."""
    data = record.value or b""
    frame, position = _varint(data, 0)
    if frame != _FRAME:
        raise ValueError(f"a record with a frame of version {frame}")
    kind, position = _varint(data, position)
    version, position = _varint(data, position)
    if kind in _BOUNDS:
        return Bound(kind)
    if kind in IGNORED:
        return None
    if kind not in KINDS:
        raise ValueError(f"a record of the unknown kind {kind}")
    return KINDS[kind].decode(data[position:], version=version, header=False)


def _control(record: Record) -> Any:
    _, kind = _CONTROL.unpack_from(record.key or b"")
    if kind in IGNORED_CONTROL:
        return None
    if kind == SNAPSHOT_FOOTER:
        return SnapshotEnd()
    if kind != LEADER_CHANGE:
        raise ValueError(f"a control record of the unknown kind {kind}")
    _, leader_id = _LEADER.unpack_from(record.value or b"")
    return LeaderChange(leader_id)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number that is longer than five bytes")
