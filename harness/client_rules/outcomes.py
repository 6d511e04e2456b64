"""What an error says about an operation: that it did not happen (fail), or that the outcome is unknown (info).

Declaring a fail is a promise that the value can never be read, so only what is certain is a fail. A retried request may
have been carried out at an earlier attempt whose answer was lost, so a refusal that depends on the state of the
cluster is certain only for a request that was tried once.

Errors are Kafka's numbers. librdkafka uses the same ones, and negative ones for errors that no broker sent.
"""

from harness.broker.wire.error_codes import ErrorCode
from harness.client_rules.steps import Failure
from harness.store.history import OpType

# Errors that a 2.5 broker without authorization never returns, so that `ErrorCode` has no name for them.
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
# librdkafka's own.
QUEUE_FULL = -184
NO_OFFSET = -168

REFUSED_WHATEVER_THE_STATE = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_RECORD,
        TOPIC_AUTHORIZATION_FAILED,
        CLUSTER_AUTHORIZATION_FAILED,
        QUEUE_FULL,
    }
)
"""The record itself is not acceptable, or never left the client: every attempt ends the same way."""
OF_THE_BATCH = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
"""The record's present batch is too large; at an earlier attempt it may have been in a smaller one."""
REFUSED_BEFORE_APPEND = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS})
"""NOT_LEADER_FOR_PARTITION is none of these: a leader that lost its role answers so after it appended."""
COMMIT_REFUSED = frozenset(
    {
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        GROUP_AUTHORIZATION_FAILED,
        NO_OFFSET,
    }
)
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
NOT_THIS_PRODUCER = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)
"""A coordinator refused what this producer asked for; an earlier attempt of the same request may have been taken."""
_FATAL = NOT_THIS_PRODUCER | {TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED}


def coordinator_failure(code: int) -> Failure:
    """Return what is left to a producer whose transaction coordinator refuses a request with this error for good."""
    return Failure.FATAL if code in _FATAL else Failure.ABORTABLE


def send_outcome(code: int, *, tried_once: bool) -> OpType:
    """Return the outcome of a send whose last attempt got this error."""
    certain = code in REFUSED_WHATEVER_THE_STATE - OF_THE_BATCH
    if certain or (tried_once and code in REFUSED_BEFORE_APPEND | OF_THE_BATCH):
        return OpType.FAIL
    return OpType.INFO


def commit_outcome(code: int) -> OpType:
    """Return the outcome of a commit that got this error; clients retry commits by themselves."""
    if code == ErrorCode.NONE:
        return OpType.OK
    return OpType.FAIL if code in COMMIT_REFUSED else OpType.INFO
