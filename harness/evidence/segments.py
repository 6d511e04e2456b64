"""Reads the records in a replica's segment files, by another parser than the broker's.

The judge must not share the broker's errors in reading the format: kafka-python's record reader decodes batches, after
pyarrow has decompressed them.
"""

import hashlib
import mmap
import struct
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch

from harness.values import value_class

_RECORD_BATCH: Any = DefaultRecordBatch  # has no annotations
_MESSAGE: Any = LegacyRecordBatch
HEADER_BYTES: int = DefaultRecordBatch.HEADER_STRUCT.size
LENGTH = struct.Struct(">qi")
"""Base offset, and the number of bytes after these two fields."""
ATTRIBUTES = struct.Struct(">h")
MAGIC_POSITION = 16
ATTRIBUTES_POSITION = 21
LAST_OFFSET_DELTA = struct.Struct(">i")
LAST_OFFSET_DELTA_POSITION = 23
MAGIC = 2
LEGACY_HEADER_BYTES = {0: LegacyRecordBatch.KEY_OFFSET_V0, 1: LegacyRecordBatch.KEY_OFFSET_V1}
"""By message format before 0.11: a message is a record, or holds several, compressed."""
CODEC_MASK = 0x07
CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16
ABORT, COMMIT = 0, 1
MARKER_VALUE = struct.Struct(">hi")
"""A version, and the epoch of the coordinator."""
NO_SEQUENCE = -1
SEQUENCES = 1 << 31
_FRAME = struct.Struct(">i")


@value_class(frozen=True)  # without slots: what is derived is kept
class StoredRecord:
    """One record with the fields of its batch."""

    offset: int
    leader_epoch: int
    """-1 in message formats without one."""
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    producer_id: int
    producer_epoch: int
    sequence: int
    """Of the record; -1 without idempotence."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 over key, value and headers, each prefixed with its length so that none is ambiguous."""
        parts = [self.key, self.value]
        for name, value in self.headers:
            parts += [name.encode(), value]
        framed = [_FRAME.pack(-1) if part is None else _FRAME.pack(len(part)) + part for part in parts]
        return hashlib.sha256(b"".join(framed)).hexdigest()


@value_class(frozen=True, slots=True)
class ReadMarker:
    """One transaction marker with the fields of its batch."""

    offset: int
    leader_epoch: int
    timestamp_ms: int
    producer_id: int
    producer_epoch: int
    commits: bool
    coordinator_epoch: int


@value_class(frozen=True, slots=True)
class ReadBatch:
    """The header of a batch of a transaction."""

    first_offset: int
    last_offset: int
    leader_epoch: int
    timestamp_ms: int
    producer_id: int
    producer_epoch: int
    first_sequence: int


Batches = dict[bytes, "_Batch"]
"""Batches that were read, by their bytes."""


class ReplicaLog:
    """Iterates over a replica's records in the order of its log, up to the first damage, without control batches.

    Batches that are `known` are not read again, and others become so.
    """

    def __init__(self, folder: Path, known: Batches | None = None) -> None:
        self.folder = folder
        self.known = known
        self.markers: list[ReadMarker] = []
        """After the iteration: the transaction markers."""
        self.transactional: list[ReadBatch] = []
        """After the iteration: the batches of transactions."""
        self._segments = sorted(folder.glob("*.log"))
        self.start_offset = int(self._segments[0].stem) if self._segments else 0
        """Base offset of the first segment."""
        self.end_offset = self.start_offset
        """After the iteration: the offset of the next record."""
        self.damage = "" if self._segments else "no segment file"
        """After the iteration: empty, or what is damaged and where reading stopped."""

    def __iter__(self) -> Iterator[StoredRecord]:
        for segment in self._segments:
            self.end_offset = max(self.end_offset, int(segment.stem))
            yield from self._records_of(segment)
            if self.damage:
                return

    def _records_of(self, segment: Path) -> Iterator[StoredRecord]:
        size = segment.stat().st_size
        if size == 0:
            return
        with segment.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
            position = 0
            while position < size:
                try:
                    batch = self._batch(_raw(data, position))
                    if batch.base_offset < self.end_offset:
                        raise CorruptRecordError(f"offset {batch.base_offset} after {self.end_offset - 1}")
                except (CorruptRecordError, UnsupportedCodecError, ValueError, OSError) as error:
                    self.damage = f"{segment.name}: {error} at byte {position} of {size}"
                    return
                yield from batch.records
                self.markers += batch.markers
                self.transactional += batch.transactional
                self.end_offset = batch.next_offset
                position += batch.length

    def _batch(self, raw: bytes) -> "_Batch":
        if self.known is None:
            return _read(raw)
        batch = self.known.get(raw)
        if batch is None:
            batch = self.known[raw] = _read(raw)
        return batch


def log_end(folder: Path) -> int:
    """Return the offset after the last whole batch of a replica's log, by the headers in its last segment."""
    segments = sorted(folder.glob("*.log"))
    if not segments:
        return 0
    end, size = int(segments[-1].stem), segments[-1].stat().st_size
    if size == 0:
        return end
    with segments[-1].open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
        position = 0
        while position + MAGIC_POSITION < size:
            base_offset, length = LENGTH.unpack_from(data, position)
            counts = data[position + MAGIC_POSITION] == MAGIC
            following = position + LENGTH.size + length
            if following > size or following <= position + (HEADER_BYTES if counts else MAGIC_POSITION):
                break
            last = LAST_OFFSET_DELTA.unpack_from(data, position + LAST_OFFSET_DELTA_POSITION)[0] if counts else 0
            end, position = base_offset + last + 1, following
    return end


@value_class(frozen=True, slots=True, kw_only=True)
class _Batch:
    """One batch."""

    base_offset: int
    next_offset: int
    length: int
    """Bytes in the file."""
    records: list[StoredRecord]
    """Empty for a control batch."""
    markers: tuple[ReadMarker, ...] = ()
    transactional: tuple[ReadBatch, ...] = ()
    """The batch itself, if it is a transaction's."""


def _raw(data: mmap.mmap, position: int) -> bytes:
    """Return the bytes of the batch at a position; raises for a damaged one."""
    rest = len(data) - position
    if rest < HEADER_BYTES and (rest <= MAGIC_POSITION or data[position + MAGIC_POSITION] not in LEGACY_HEADER_BYTES):
        raise CorruptRecordError(f"half a batch header ({rest} bytes)")
    magic = data[position + MAGIC_POSITION]
    if magic != MAGIC and magic not in LEGACY_HEADER_BYTES:
        raise CorruptRecordError(f"a batch of format {magic}")
    length = LENGTH.unpack_from(data, position)[1] + LENGTH.size
    if not LEGACY_HEADER_BYTES.get(magic, HEADER_BYTES) <= length <= rest:
        raise CorruptRecordError(f"a batch of {length} bytes where {rest} are left")
    return data[position : position + length]


def _read(raw: bytes) -> _Batch:
    """Return a batch, decompressed; raises for a damaged one."""
    magic, length = raw[MAGIC_POSITION], len(raw)
    batch = _RECORD_BATCH(raw) if magic == MAGIC else _MESSAGE(raw, magic)
    if not batch.validate_crc():
        raise CorruptRecordError("a batch with a wrong CRC")
    if magic != MAGIC:
        messages = [_message(record) for record in batch]
        first, last = messages[0].offset, messages[-1].offset
        return _Batch(base_offset=first, next_offset=last + 1, length=length, records=messages)
    codec = batch.compression_type
    whole = _expanded(raw, codec) if codec else batch
    return _Batch(
        base_offset=whole.base_offset,
        next_offset=whole.next_offset,
        length=length,
        records=[] if whole.is_control_batch else [_stored(whole, record) for record in whole],
        markers=tuple(_markers(whole)) if whole.is_control_batch else (),
        transactional=(_header(whole),) if whole.is_transactional and not whole.is_control_batch else (),
    )


def _header(batch: Any) -> ReadBatch:
    return ReadBatch(
        first_offset=batch.base_offset,
        last_offset=batch.next_offset - 1,
        leader_epoch=batch.leader_epoch,
        timestamp_ms=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        first_sequence=batch.base_sequence,
    )


def _markers(batch: Any) -> Iterator[ReadMarker]:
    """Yield the transaction markers of a control batch; other control records are skipped."""
    try:
        records = list(batch)
    except struct.error:
        return
    for record in records:
        if record.type in (ABORT, COMMIT) and len(record.value or b"") >= MARKER_VALUE.size:
            yield ReadMarker(
                offset=record.offset,
                leader_epoch=batch.leader_epoch,
                timestamp_ms=record.timestamp,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                commits=record.type == COMMIT,
                coordinator_epoch=MARKER_VALUE.unpack_from(record.value)[1],
            )


def _expanded(raw: bytes, codec: int) -> Any:
    """Return the batch without compression."""
    if codec not in CODECS:
        raise CorruptRecordError(f"a batch with unknown compression {codec}")
    attributes = ATTRIBUTES.unpack_from(raw, ATTRIBUTES_POSITION)[0] & ~CODEC_MASK
    header = bytearray(raw[:HEADER_BYTES])
    ATTRIBUTES.pack_into(header, ATTRIBUTES_POSITION, attributes)
    return _RECORD_BATCH(bytes(header) + _decompressed(raw[HEADER_BYTES:], CODECS[codec]))


def _decompressed(data: bytes, codec: str) -> bytes:
    import pyarrow as pa  # takes a tenth of a second to load, and few logs are compressed

    if codec != "snappy":
        expanded: bytes = pa.CompressedInputStream(pa.BufferReader(data), codec).read()
        return expanded
    return b"".join(pa.decompress(block, _snappy_size(block), "snappy", asbytes=True) for block in _snappy_blocks(data))


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the raw blocks of snappy-java's framing, which Java clients write; other clients write one raw block."""
    if not data.startswith(XERIAL_MAGIC):
        yield data
        return
    position = XERIAL_HEADER_BYTES
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        yield data[position + 4 : position + 4 + size]
        position += 4 + size


def _snappy_size(block: bytes) -> int:
    """Return the decompressed size at the beginning of a raw snappy block, a little-endian base-128 number."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise CorruptRecordError("a snappy block without its size")


def _message(record: Any) -> StoredRecord:
    """Return a record of a message format without epochs and producer ids."""
    return StoredRecord(
        offset=record.offset,
        leader_epoch=-1,
        timestamp_ms=-1 if record.timestamp is None else record.timestamp,
        key=record.key,
        value=record.value,
        headers=[],
        producer_id=-1,
        producer_epoch=-1,
        sequence=NO_SEQUENCE,
    )


def _stored(batch: Any, record: Any) -> StoredRecord:
    sequence = batch.base_sequence
    if sequence != NO_SEQUENCE:
        sequence = (sequence + record.offset - batch.base_offset) % SEQUENCES
    return StoredRecord(
        offset=record.offset,
        leader_epoch=batch.leader_epoch,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        sequence=sequence,
    )
