"""Transaction markers: the control batches that end a producer's transaction on a partition (KIP-98).

A control batch has one record. Its key is a version and a type, its value a version and the epoch of the transaction
coordinator that decided (`ControlRecordType`, `EndTransactionMarker`).
"""

import struct
from typing import NamedTuple

from harness.broker.log.batch import BatchHeader, Buffer, Numbering, build_batch, parse_records
from harness.broker.log.records import MalformedRecords, Record

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0
_ABORT, _COMMIT = 0, 1
TRANSACTIONAL = 0x10
_CONTROL = 0x20


class Marker(NamedTuple):
    """The outcome of a transaction, and the coordinator epoch of the decision."""

    commits: bool
    coordinator_epoch: int


def marker_batch(marker: Marker, *, producer_id: int, producer_epoch: int, timestamp_ms: int) -> bytes:
    """Return the control batch that a leader appends for a marker."""
    key = _KEY.pack(_VERSION, _COMMIT if marker.commits else _ABORT)
    record = Record(key=key, value=_VALUE.pack(_VERSION, marker.coordinator_epoch), timestamp_ms=timestamp_ms)
    numbering = Numbering(producer_id=producer_id, producer_epoch=producer_epoch)
    return build_batch([record], attributes=TRANSACTIONAL | _CONTROL, numbering=numbering)


def read_marker(batch: Buffer, header: BatchHeader) -> Marker | None:
    """Return the marker in a control batch; None when a cleaner has emptied it, or it is of another kind."""
    try:
        record = parse_records(batch)[0]
    except (MalformedRecords, IndexError):
        return None
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        return None
    kind = _KEY.unpack_from(key)[1]
    return Marker(kind == _COMMIT, _VALUE.unpack_from(value)[1]) if kind in (_ABORT, _COMMIT) else None
