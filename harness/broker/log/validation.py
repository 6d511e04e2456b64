"""Validates a producer's bytes before an append, by the checks of Kafka's `ProduceRequest`, `Log` and `LogValidator`.

Each refusal has Kafka's error code, in Kafka's order. Records are counted by reading lengths, after decompression;
their content (key and value lengths, header names) is not checked. Inside a compressed batch their offsets must be
consecutive.
"""

from harness.broker.log.batch import (
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    CorruptBatch,
    crc_matches,
    next_batch_size,
    parse_header,
    parse_records,
    records_section,
)
from harness.broker.log.compression import CODEC_NAMES, NO_COMPRESSION
from harness.broker.log.records import MalformedRecords, Record, count_records, has_incremental_offsets
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import NO_TIMESTAMP


class InvalidRecords(Exception):
    """Records were refused; nothing was written."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


def validate_for_leader(
    records: bytes, *, max_batch_bytes: int, keys_needed: bool = False, internal: bool = False
) -> BatchHeader:
    """Return the header of the one batch of a producer; trailing bytes without a whole batch are ignored.

    With `keys_needed` the topic is compacted: a record without a key could never be replaced. The caller checks whether
    a transactional batch was expected: `header.is_transactional`. An `internal` batch is a coordinator's: it may be a
    marker, and need not be numbered.

    Raises:
        InvalidRecords: the batch may not be appended.
    """
    header = _only_batch(records)
    if header.base_offset != 0:
        raise _invalid(f"the batch of a producer starts at offset 0, this one at {header.base_offset}")
    check_size(header.size, max_batch_bytes)
    batch = memoryview(records)[: header.size]
    if not crc_matches(batch, header):
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"the batch does not fit its CRC {header.crc:#010x}")
    _check_header(header, internal=internal)
    _check_records(batch, header)
    if keys_needed and any(record.key is None for record in _parsed(batch)):
        raise _invalid("a record without a key on a compacted topic")
    return header


def check_timestamps(batch: memoryview, now_ms: int, *, oldest_ms: int, youngest_ms: int) -> None:
    """Return when no record of a valid batch is too old or too new; raises InvalidRecords."""
    for record in _parsed(batch):
        age_ms = now_ms - record.timestamp_ms
        if record.timestamp_ms != NO_TIMESTAMP and not -youngest_ms <= age_ms <= oldest_ms:
            raise InvalidRecords(
                ErrorCode.INVALID_TIMESTAMP, f"a record of {record.timestamp_ms} ms comes at {now_ms} ms"
            )


def check_size(size: int, max_batch_bytes: int) -> None:
    """Return when a batch of this size may be written; raises InvalidRecords."""
    if size > max_batch_bytes:
        raise InvalidRecords(
            ErrorCode.MESSAGE_TOO_LARGE, f"a batch may have {max_batch_bytes} bytes, this one has {size}"
        )


def validate_for_follower(batch: memoryview, header: BatchHeader) -> None:
    """Return when a leader's batch arrived complete.

    Raises:
        InvalidRecords: it did not.
    """
    if not crc_matches(batch, header) or header.last_offset_delta < 0:
        raise InvalidRecords(
            ErrorCode.CORRUPT_MESSAGE, f"the leader's batch at offset {header.base_offset} does not fit its CRC"
        )


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)


def _only_batch(records: bytes) -> BatchHeader:
    try:
        size = next_batch_size(records, 0)
        if size is None:
            raise _invalid(f"no whole batch in {len(records)} bytes")
        if records[MAGIC_AT] != MAGIC:
            raise _invalid(f"record format {records[MAGIC_AT]}; this version of Produce takes format {MAGIC} only")
        if next_batch_size(records, size) is not None:
            raise _invalid("more than one batch for one partition")
    except CorruptBatch as error:
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if size < HEADER_BYTES:
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"a batch header has {HEADER_BYTES} bytes, all here is {size}")
    return parse_header(records)


def _check_header(header: BatchHeader, *, internal: bool) -> None:
    count, offsets = header.records_count, header.last_offset_delta + 1
    if not 0 < count == offsets:
        raise _invalid(f"the batch says it holds {count} records and spans {offsets} offsets")
    if header.is_control and not internal:
        raise _invalid("a producer cannot write a transaction marker")
    if header.producer_id >= 0 and header.base_sequence < 0 and not internal:
        raise _invalid(f"producer id {header.producer_id} with sequence {header.base_sequence}")
    if header.is_log_append_time:
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, "a producer cannot claim the broker's timestamps")
    if header.codec not in CODEC_NAMES:
        raise InvalidRecords(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression codec {header.codec}")


def _parsed(batch: memoryview) -> list[Record]:
    try:
        return parse_records(batch)
    except MalformedRecords as error:
        raise _invalid(str(error)) from error


def _check_records(batch: memoryview, header: BatchHeader) -> None:
    try:
        payload = records_section(batch, header)
        count = count_records(payload)
    except MalformedRecords as error:
        raise _invalid(str(error)) from error
    if count != header.records_count:
        raise _invalid(f"{count} records, {header.records_count} announced")
    if header.codec != NO_COMPRESSION and not has_incremental_offsets(payload):
        raise _invalid("the records inside a compressed batch do not have incremental offsets")
