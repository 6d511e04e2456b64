"""Record batches (format v2) as bytes: their 61-byte header, their CRC, and the two fields that a leader stamps.

Base offset and leader epoch lie outside the CRC, so a leader patches 12 bytes and leaves everything else as the
producer sent it. The format is Kafka's `DefaultRecordBatch`.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from crc32c import crc32c

from harness.broker.log.compression import BadCompression, compress, decompress
from harness.broker.log.records import MalformedRecords, Record, decode_records, deltas, encode_records

HEADER_BYTES = 61
MAGIC = 2
LENGTH_END = 12
"""Base offset and batch length; the length counts the bytes after itself."""
MAGIC_AT = 16
_MIN_LENGTH = 14
"""The smallest batch length of any format (`LegacyRecord.RECORD_OVERHEAD_V0`)."""
_CRC_AT = 17
_CRC_FROM = 21

DELETE_HORIZON = 0x40
"""Attribute of a batch whose base timestamp is the deadline of its tombstones (KIP-534)."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_OFFSET = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_EPOCH_AT = 12
_CODEC_MASK = 0x07
_APPEND_TIME = 0x08
_CRC = struct.Struct(">I")

Buffer = bytes | bytearray | memoryview


class CorruptBatch(ValueError):
    """Bytes that should be a batch are not one."""


class BatchHeader(NamedTuple):
    """The header of one batch; a named tuple because one is made for every batch appended."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LENGTH_END

    @property
    def last_offset(self) -> int:
        """The offset of the batch's last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """How the records are compressed: 0 not at all, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether the timestamps are the broker's."""
        return bool(self.attributes & _APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a transaction marker."""
        return bool(self.attributes & 0x20)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones in the batch may be removed; None before a cleaner has seen them."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def parse_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Return the header that starts at `position`; the caller knows that 61 bytes are there."""
    return BatchHeader._make(_HEADER.unpack_from(data, position))


def first_header(records: Buffer) -> BatchHeader | None:
    """Return the header at the start of records, if they start like a batch; nothing is checked."""
    like_a_batch = len(records) >= HEADER_BYTES and records[MAGIC_AT] == MAGIC
    return parse_header(records) if like_a_batch else None


def next_batch_size(data: Buffer, position: int) -> int | None:
    """Return the size of the batch at `position`, of any format, or None when it is incomplete.

    Raises:
        CorruptBatch: no batch can look like this (`ByteBufferLogInputStream`).
    """
    left = len(data) - position
    if left < LENGTH_END:
        return None
    (length,) = _LENGTH.unpack_from(data, position + LENGTH_END - _LENGTH.size)
    if length < _MIN_LENGTH:
        raise CorruptBatch(f"batch length {length} at byte {position} is less than the least possible, {_MIN_LENGTH}")
    if left <= MAGIC_AT:
        return None
    magic = data[position + MAGIC_AT]
    if magic > MAGIC:
        raise CorruptBatch(f"unknown record format (magic {magic}) at byte {position}")
    size: int = length + LENGTH_END
    return size if size <= left else None


def iter_batches(data: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield header and bytes of every whole batch; an incomplete last one is left out.

    Raises:
        CorruptBatch: a batch is malformed or older than format v2.
    """
    view = memoryview(data)
    position = 0
    while (size := next_batch_size(view, position)) is not None:
        if view[position + MAGIC_AT] != MAGIC or size < HEADER_BYTES:
            raise CorruptBatch(f"the batch at byte {position} has {size} bytes and format {view[position + MAGIC_AT]}")
        yield parse_header(view, position), view[position : position + size]
        position += size


def crc_matches(batch: Buffer, header: BatchHeader) -> bool:
    """Whether the batch matches its CRC-32C; `batch` is exactly one batch."""
    return crc32c(memoryview(batch)[_CRC_FROM:]) == header.crc


def assign(batch: bytearray, base_offset: int, leader_epoch: int) -> None:
    """Stamp the leader's two fields into the batch, in place; the CRC does not cover them."""
    _OFFSET.pack_into(batch, 0, base_offset)
    _LENGTH.pack_into(batch, _EPOCH_AT, leader_epoch)


def stamp_append_time(batch: bytearray, now_ms: int) -> None:
    """Set the broker's time for all records of a batch, in place (`DefaultRecordBatch.setMaxTimestamp`)."""
    header = parse_header(batch)
    stamped = header._replace(attributes=header.attributes | _APPEND_TIME, max_timestamp=now_ms)
    _HEADER.pack_into(batch, 0, *stamped)
    seal(batch)


class Numbering(NamedTuple):
    """A batch's producer, and its position in the producer's sequence (KIP-98)."""

    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1


UNNUMBERED = Numbering()


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int = 0,
    numbering: Numbering = UNNUMBERED,
) -> bytes:
    """Return an uncompressed batch of `records`."""
    base_timestamp = records[0].timestamp_ms
    payload = encode_records(records, base_timestamp)
    batch = bytearray(HEADER_BYTES) + payload
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=len(batch) - LENGTH_END,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp_ms for record in records),
        producer_id=numbering.producer_id,
        producer_epoch=numbering.producer_epoch,
        base_sequence=numbering.base_sequence,
        records_count=len(records),
    )
    _HEADER.pack_into(batch, 0, *header)
    seal(batch)
    return bytes(batch)


def batch_with(header: BatchHeader, payload: bytes) -> bytes:
    """Return a batch of this header and these encoded records; length and CRC are computed."""
    batch = bytearray(HEADER_BYTES) + payload
    _HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LENGTH_END))
    seal(batch)
    return bytes(batch)


def seal(batch: bytearray) -> None:
    """Write the batch's CRC."""
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_FROM:]))


def records_section(batch: Buffer, header: BatchHeader) -> bytes:
    """Return the records of one batch, decompressed, still encoded.

    Raises:
        MalformedRecords: they cannot be decompressed.
    """
    try:
        return decompress(memoryview(batch)[HEADER_BYTES:], header.codec)
    except BadCompression as error:
        raise MalformedRecords(str(error)) from error


def recompressed(batch: Buffer, header: BatchHeader, codec: int) -> bytearray:
    """Return the same batch with its records in another codec.

    Raises:
        MalformedRecords: they cannot be decompressed.
    """
    payload = compress(records_section(batch, header), codec)
    new = bytearray(memoryview(batch)[:HEADER_BYTES]) + payload
    attributes = header.attributes & ~_CODEC_MASK | codec
    _HEADER.pack_into(new, 0, *header._replace(attributes=attributes, batch_length=len(new) - LENGTH_END))
    seal(new)
    return new


def parse_records(batch: Buffer) -> list[Record]:
    """Return the records of one batch, with their offsets in the log.

    Raises:
        MalformedRecords: they are inconsistent, or cannot be decompressed.
    """
    header = parse_header(batch)
    records = decode_records(
        records_section(batch, header), header.records_count, header.base_offset, header.base_timestamp
    )
    if header.is_log_append_time:
        return [replace(record, timestamp_ms=header.max_timestamp) for record in records]
    return records


def record_reaching(batch: Buffer, timestamp_ms: int, first_offset: int) -> tuple[int, int] | None:
    """Return offset and timestamp of the first record with `timestamp_ms` or later, from `first_offset` on.

    For an opaque batch, return its first offset, with its largest timestamp.
    """
    header = parse_header(batch)
    try:
        for timestamp_delta, offset_delta in deltas(records_section(batch, header)):
            offset = header.base_offset + offset_delta
            stamp_ms = header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta
            if stamp_ms >= timestamp_ms and offset >= first_offset:
                return offset, stamp_ms
    except MalformedRecords:
        if header.last_offset >= first_offset:
            return max(header.base_offset, first_offset), header.max_timestamp
    return None
