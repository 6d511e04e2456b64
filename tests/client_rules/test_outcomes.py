import pytest
from confluent_kafka import KafkaError

from harness.broker.wire.error_codes import ErrorCode
from harness.client_rules import outcomes
from harness.client_rules.outcomes import commit_outcome, send_outcome
from harness.store.history import OpType

FAIL, INFO = OpType.FAIL, OpType.INFO


@pytest.mark.parametrize(
    ("code", "retries", "outcome"),
    [
        pytest.param(KafkaError._MSG_TIMED_OUT, 5, INFO, id="timed out: it may be in the log"),
        pytest.param(KafkaError._TRANSPORT, 5, INFO, id="connection lost: the answer may have been"),
        pytest.param(KafkaError.REQUEST_TIMED_OUT, 5, INFO, id="the ISR did not get it in time, and may yet"),
        pytest.param(KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0, INFO, id="appended, not replicated"),
        pytest.param(KafkaError.NOT_ENOUGH_REPLICAS, 0, FAIL, id="refused before the append, first try"),
        pytest.param(KafkaError.NOT_ENOUGH_REPLICAS, 1, INFO, id="refused, but an earlier try may have appended"),
        pytest.param(KafkaError.NOT_LEADER_FOR_PARTITION, 0, INFO, id="lost the lead, maybe after the append"),
        pytest.param(KafkaError._PURGE_QUEUE, 0, INFO, id="purged, maybe after a try"),
        pytest.param(KafkaError.MSG_SIZE_TOO_LARGE, 0, FAIL, id="too large, first try"),
        pytest.param(KafkaError.RECORD_LIST_TOO_LARGE, 1, INFO, id="too large, an earlier try was in a smaller batch"),
        pytest.param(KafkaError.INVALID_RECORD, 5, FAIL, id="not acceptable, with any leader"),
        pytest.param(KafkaError._QUEUE_FULL, 5, FAIL, id="never left the client"),
        pytest.param(KafkaError.UNKNOWN, 5, INFO, id="an error that says nothing"),
        pytest.param(-99999, 5, INFO, id="an unknown error"),
    ],
)
def test_only_what_certainly_did_not_happen_is_a_fail(code: int, retries: int, outcome: OpType) -> None:
    assert send_outcome(code, tried_once=retries == 0) is outcome


def test_librdkafka_has_the_numbers_of_the_table() -> None:
    assert {code: code for code in outcomes.REFUSED_WHATEVER_THE_STATE} == {
        ErrorCode.MESSAGE_TOO_LARGE: KafkaError.MSG_SIZE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE: KafkaError.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION: KafkaError.TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS: KafkaError.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TIMESTAMP: KafkaError.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_RECORD: KafkaError.INVALID_RECORD,
        outcomes.TOPIC_AUTHORIZATION_FAILED: KafkaError.TOPIC_AUTHORIZATION_FAILED,
        outcomes.CLUSTER_AUTHORIZATION_FAILED: KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        outcomes.QUEUE_FULL: KafkaError._QUEUE_FULL,
    }
    assert {KafkaError.NOT_ENOUGH_REPLICAS} == outcomes.REFUSED_BEFORE_APPEND
    assert {
        KafkaError.OFFSET_METADATA_TOO_LARGE,
        KafkaError.INVALID_GROUP_ID,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.INVALID_COMMIT_OFFSET_SIZE,
        KafkaError._NO_OFFSET,
    } == outcomes.COMMIT_REFUSED


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        pytest.param(KafkaError.NO_ERROR, OpType.OK, id="no error"),
        pytest.param(KafkaError.REQUEST_TIMED_OUT, INFO, id="may have been committed"),
        pytest.param(KafkaError._TRANSPORT, INFO, id="connection lost"),
        pytest.param(KafkaError.NOT_COORDINATOR, INFO, id="an earlier try may have been carried out"),
        pytest.param(KafkaError.OFFSET_METADATA_TOO_LARGE, FAIL, id="not acceptable, with any coordinator"),
        pytest.param(KafkaError._NO_OFFSET, FAIL, id="nothing to commit"),
    ],
)
def test_a_commit_is_judged_likewise(code: int, outcome: OpType) -> None:
    assert commit_outcome(code) is outcome
