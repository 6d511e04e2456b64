"""What an error says about an operation, for clients that retry: it certainly did not happen, or nobody knows.

The same judgement as that of the real clients (`kafka_chaos.workloads.clients.outcomes`), by Kafka's own error codes.
"""

from harness.broker.wire.error_codes import ErrorCode
from harness.store.history import OpType

REFUSED_WHATEVER_THE_STATE = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_RECORD,
    }
)
"""The record itself is not acceptable: every attempt ends the same way."""
REFUSED_BEFORE_APPEND = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS})
COMMIT_REFUSED = frozenset(
    {
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    }
)


def send_outcome(code: int, *, attempts: int) -> OpType:
    """Return how a send ended that got this error at the last of so many attempts."""
    if code in REFUSED_WHATEVER_THE_STATE or (attempts == 1 and code in REFUSED_BEFORE_APPEND):
        return OpType.FAIL
    return OpType.INFO


def commit_outcome(code: int) -> OpType:
    """Return how a commit ended that got this error."""
    return OpType.FAIL if code in COMMIT_REFUSED else OpType.INFO


def described(code: int) -> str:
    """Return the name of an error."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


class Refused(Exception):
    """A broker answered with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(described(code))
        self.code = code
