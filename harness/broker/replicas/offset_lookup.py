"""ListOffsets: the first or last offset of a partition, the youngest record, or the first of a timestamp."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from harness.broker.log.epoch_cache import UNDEFINED_EPOCH
from harness.broker.replicas.partition import Partition, PartitionError
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
)
from harness.events import NO_OFFSET


class TimestampAndOffset(NamedTuple):
    """An offset with its record's timestamp and leader epoch; -1 without one."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = TimestampAndOffset(NO_TIMESTAMP, NO_OFFSET, UNDEFINED_EPOCH)

_KNOWN_SINCE: Mapping[int, int] = MappingProxyType(
    {EARLIEST: 0, LATEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
)
"""The first version of ListOffsets for each special timestamp."""


def check_timestamp(timestamp: int, version: int) -> None:
    """Raise PartitionError for a special timestamp that is unknown in this version of ListOffsets."""
    if timestamp < 0 and version < _KNOWN_SINCE.get(timestamp, version + 1):
        raise PartitionError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")


def find_offset(
    partition: Partition, timestamp: int, *, whole_log: bool, read_committed: bool = False
) -> TimestampAndOffset:
    """Return the offset of a timestamp: consumers see committed records, others the whole log.

    Consumers that read committed see records before the last stable offset.

    A leader whose high watermark has not reached the start of its own epoch does not know what is committed: an earlier
    answer may have been higher (KIP-207).

    Raises:
        PartitionError: the answer would go back, or the disk does not give the record.
    """
    log = partition.log
    if timestamp == LATEST_TIERED:  # nothing is tiered
        return NOTHING
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampAndOffset(NO_TIMESTAMP, log.log_start_offset, log.epochs.epoch_at(log.log_start_offset))
    visible = partition.last_stable_offset if read_committed else partition.high_watermark
    end = log.log_end_offset if whole_log else visible
    knows_what_is_committed = partition.high_watermark >= partition.epoch_start_offset
    waits = partition.rules.latest_waits_for_epoch_start
    may_go_back = not whole_log and not knows_what_is_committed and waits
    if timestamp == LATEST:
        if may_go_back:
            raise PartitionError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return TimestampAndOffset(NO_TIMESTAMP, end, partition.leader_epoch)
    try:
        record = log.youngest_record() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    except OSError as error:  # the directory has recorded it
        raise PartitionError(ErrorCode.KAFKA_STORAGE_ERROR) from error
    if record is not None and record[0] < end:
        return TimestampAndOffset(record[1], record[0], log.epochs.epoch_at(record[0]))
    if may_go_back:
        raise PartitionError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return NOTHING
