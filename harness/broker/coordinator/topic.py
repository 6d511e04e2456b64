"""A coordinator's topic, and the errors for clients of failed appends to it."""

from collections.abc import Mapping
from typing import Protocol

from harness.broker.log.verification import Verification
from harness.broker.wire.error_codes import ErrorCode

NO_CORRELATION_ID = -1

_COORDINATION_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_FOR_PARTITION: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)

COMMIT_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    **_COORDINATION_ERRORS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
}
"""For offsets; any other error is passed on, a time-out leaves the commit unknown."""
GROUP_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    **_COORDINATION_ERRORS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
}
"""For a group's own record; any other error is passed on."""
TRANSACTION_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    **_COORDINATION_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""For the state of a transaction; any other error is passed on."""


class CoordinatorLog(Protocol):
    """The local log of one partition of the topic."""

    @property
    def log_start_offset(self) -> int:
        """The first offset."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        ...

    async def read_off_loop(self, offset: int, *, max_bytes: int, up_to: int, at_least_one: bool) -> bytes:
        """Return whole batches from `offset` on, without blocking the loop."""
        ...


class Appended(Protocol):
    """The result of an append."""

    @property
    def error(self) -> ErrorCode:
        """NONE when the record is committed."""
        ...

    @property
    def base_offset(self) -> int:
        """Of the first record."""
        ...


class CoordinatorTopic(Protocol):
    """The topic as this broker holds it."""

    def log(self, partition: int) -> CoordinatorLog | None:
        """Return the local log of a partition, or None."""
        ...

    def high_watermark(self, partition: int) -> int:
        """Return the committed end of the local log."""
        ...

    async def append(
        self,
        partition: int,
        records: bytes,
        *,
        client: str,
        correlation_id: int,
        timeout_s: float | None = None,
        verification: Verification | None = None,
    ) -> Appended:
        """Append with acks=all and wait for the high watermark."""
        ...
