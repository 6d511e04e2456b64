"""ListOffsets: which offset of a partition is the first, the last, or the first at or after a timestamp."""

from typing import NamedTuple

from harness.broker.log.epoch_cache import UNDEFINED_EPOCH
from harness.broker.replicas.partition import Partition, PartitionError
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET

LATEST = -1
EARLIEST = -2
NO_TIMESTAMP = -1


class FoundOffset(NamedTuple):
    """An offset with the timestamp of its record and the leader epoch that wrote it; -1 where there is none."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = FoundOffset(NO_TIMESTAMP, NO_OFFSET, UNDEFINED_EPOCH)


def find_offset(partition: Partition, timestamp: int, *, for_follower: bool) -> FoundOffset:
    """Return the offset asked for: consumers see what is committed, followers the whole log.

    A leader whose high watermark has not reached the start of its own epoch cannot tell a consumer what is committed:
    an earlier answer may have been further on (KIP-207).

    Raises:
        PartitionError: the answer would go back, or the timestamp is a negative number that means nothing.
    """
    log = partition.log
    if timestamp == EARLIEST:
        return FoundOffset(NO_TIMESTAMP, log.log_start_offset, log.epochs.epoch_at(log.log_start_offset))
    if timestamp < LATEST:
        raise PartitionError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
    end = log.log_end_offset if for_follower else partition.high_watermark
    may_go_back = not for_follower and partition.high_watermark < partition.epoch_start_offset
    if timestamp == LATEST:
        if may_go_back:
            raise PartitionError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return FoundOffset(NO_TIMESTAMP, end, partition.leader_epoch)
    found = log.offset_for_timestamp(timestamp)
    if found is not None and found[0] < end:
        return FoundOffset(found[1], found[0], log.epochs.epoch_at(found[0]))
    if may_go_back:
        raise PartitionError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return NOTHING
