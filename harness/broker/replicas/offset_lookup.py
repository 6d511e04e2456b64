"""ListOffsets: which offset of a partition is the first, the last, or the first at or after a timestamp."""

from typing import NamedTuple

from harness.broker.log.epoch_cache import UNDEFINED_EPOCH
from harness.broker.replicas.partition import Partition, PartitionError
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import EARLIEST, LATEST, NO_TIMESTAMP
from harness.events import NO_OFFSET


class TimestampAndOffset(NamedTuple):
    """An offset with the timestamp of its record and the leader epoch that wrote it; -1 where there is none."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = TimestampAndOffset(NO_TIMESTAMP, NO_OFFSET, UNDEFINED_EPOCH)


def find_offset(partition: Partition, timestamp: int, *, for_follower: bool) -> TimestampAndOffset:
    """Return the offset of a timestamp: consumers see what is committed, followers the whole log.

    A leader whose high watermark has not reached the start of its own epoch cannot tell a consumer what is committed:
    an earlier answer may have been further on (KIP-207).

    Raises:
        PartitionError: the answer would go back, or the timestamp is a negative number that means nothing.
    """
    log = partition.log
    if timestamp == EARLIEST:
        return TimestampAndOffset(NO_TIMESTAMP, log.log_start_offset, log.epochs.epoch_at(log.log_start_offset))
    if timestamp < LATEST:
        raise PartitionError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
    end = log.log_end_offset if for_follower else partition.high_watermark
    may_go_back = not for_follower and partition.high_watermark < partition.epoch_start_offset
    if timestamp == LATEST:
        if may_go_back:
            raise PartitionError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return TimestampAndOffset(NO_TIMESTAMP, end, partition.leader_epoch)
    record = log.offset_for_timestamp(timestamp)
    if record is not None and record[0] < end:
        return TimestampAndOffset(record[1], record[0], log.epochs.epoch_at(record[0]))
    if may_go_back:
        raise PartitionError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return NOTHING
