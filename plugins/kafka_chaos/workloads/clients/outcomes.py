"""What an error says about an operation: that it certainly did not happen (fail), or that nobody knows (info).

Declaring a fail is a promise that the value can never be read, so only what is certain is a fail. A retried request may
have been carried out at an earlier attempt whose answer was lost, so a refusal that depends on the state of the
cluster is certain only for a client that does not retry.
"""

from confluent_kafka import KafkaError

from harness.store.history import OpType

_REFUSED_WHATEVER_THE_STATE = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INVALID_REQUIRED_ACKS,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.INVALID_RECORD,
        KafkaError._QUEUE_FULL,
    }
)
"""The record itself is not acceptable, or never left the client: every attempt ends the same way."""

_REFUSED_BEFORE_APPEND = frozenset({KafkaError.NOT_ENOUGH_REPLICAS})
"""NOT_LEADER_FOR_PARTITION is none of these: a leader that lost its role answers so after it appended."""

_COMMIT_REFUSED = frozenset(
    {
        KafkaError.OFFSET_METADATA_TOO_LARGE,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.INVALID_COMMIT_OFFSET_SIZE,
        KafkaError._NO_OFFSET,
    }
)


def send_outcome(code: int, *, retries: int) -> OpType:
    """Return how a send ended that got this error, from a client that retries so often."""
    if code in _REFUSED_WHATEVER_THE_STATE or (retries == 0 and code in _REFUSED_BEFORE_APPEND):
        return OpType.FAIL
    return OpType.INFO


def commit_outcome(code: int) -> OpType:
    """Return how a commit ended that got this error; librdkafka retries commits by itself."""
    return OpType.FAIL if code in _COMMIT_REFUSED else OpType.INFO


def described(error: KafkaError) -> str:
    """Return name and message of an error."""
    return f"{error.name()}: {error.str()}"
