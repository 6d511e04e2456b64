"""Events of answers to producers from lines of real Kafka 3.9.1, each as a broker wrote it."""

import json
from collections.abc import Sequence

import pytest

from harness.cluster.systems.kafka.log_reader import LogReader, wording
from harness.events import Event, ProduceResponse
from tests.cluster.systems.test_events_of_isrs import WANTED
from tests.cluster.systems.test_log_reader import APPENDED, IN_SYNC, LEADER, MARKED, START, TRUNCATED

HERE = "2026-11-23 00:44:26,"
COMPLETED = (
    HERE + "300 DEBUG kafka.request.logger: Completed request:"
    '{"isForwarded":false,"requestHeader":{"requestApiKey":0,"requestApiVersion":10,"correlationId":2,"clientId":'
    '"producer-1","requestApiKeyName":"PRODUCE"},"request":{"transactionalId":null,"acks":-1,"timeoutMs":2000,'
    '"topicData":[{"name":"my.orders-2","partitionData":[{"index":1,"recordsSizeInBytes":85}]}]},"response":'
    '{"responses":[{"name":"my.orders-2","partitionResponses":[{"index":1,"errorCode":0,"baseOffset":83,'
    '"logAppendTimeMs":-1,"logStartOffset":0,"recordErrors":[],"errorMessage":null}]}],"throttleTimeMs":0},'
    '"connection":"127.0.0.1:23975-127.0.0.1:36864-1","totalTimeMs":108.183,"requestQueueTimeMs":1.257,"localTimeMs":'
    '54.185,"remoteTimeMs":51.248,"throttleTimeMs":0,"responseQueueTimeMs":1.201,"sendTimeMs":0.29,'
    '"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":'
    '{"softwareName":"confluent-kafka-python","softwareVersion":"2.16.1-rdkafka-2.16.0"}}'
)
REFUSED = COMPLETED.replace('"errorCode":0', '"errorCode":19')
UNANSWERED = COMPLETED[: COMPLETED.index('"response":')] + '"response":null,"totalTimeMs":1.5}'
RAISED = MARKED.replace("offset=83", "offset=87")


def later(*numbers: int) -> list[str]:
    """Return lines that say nothing, each so many tenths of a second after the first answer."""
    return [f"2026-11-23 00:44:{26 + (3 + each) // 10},{(3 + each) % 10}00 INFO a.b: nothing" for each in numbers]


ONE_SECOND = later(*range(1, 11))


def answered(*, isr_size: int = 2, high_watermark: int = 79) -> ProduceResponse:
    return ProduceResponse(correlation_id=2, client="producer-1", topic="my.orders-2", partition=1, acks=-1,
                           base_offset=83, last_offset=86, error=0, isr_size=isr_size, high_watermark=high_watermark,
                           leader_epoch=1, duration_ms=108.183)  # fmt: skip


def answers(lines: Sequence[str]) -> tuple[list[Event], LogReader]:
    reader = LogReader(wording("3.9.1"))
    return [event for _, _, event in reader.events(iter(lines)) if event.ev == "produce_resp"], reader


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [LEADER, APPENDED, RAISED, COMPLETED, *ONE_SECOND],
            [answered(high_watermark=87)],
            id="it acknowledges what is below the high watermark",
        ),
        pytest.param(
            [LEADER, APPENDED, COMPLETED, *ONE_SECOND, RAISED],
            [answered(high_watermark=79)],
            id="it acknowledges what is not, for a second at least",
        ),
        pytest.param(
            [LEADER, APPENDED, COMPLETED, RAISED, *ONE_SECOND],
            [answered(high_watermark=87)],
            id="another thread raises a high watermark, which is seen before it is logged",
        ),
        pytest.param(
            [LEADER, APPENDED, COMPLETED, *later(100), RAISED, *later(*range(101, 111))],
            [answered(high_watermark=87)],
            id="a process that was stopped meanwhile has a second of its own",
        ),
        pytest.param(
            [LEADER, APPENDED, IN_SYNC, RAISED, COMPLETED, *ONE_SECOND],
            [answered(isr_size=3, high_watermark=87)],
            id="the ISR grows between append and answer",
        ),
        pytest.param(
            [LEADER, APPENDED, RAISED, COMPLETED, WANTED, *ONE_SECOND],
            [answered(isr_size=3, high_watermark=87)],
            id="an ISR that is proposed counts",
        ),
        pytest.param(
            [LEADER, APPENDED, RAISED, COMPLETED, TRUNCATED, *ONE_SECOND],
            [answered(high_watermark=87)],
            id="what is truncated afterwards was acknowledged before",
        ),
        pytest.param([LEADER, APPENDED, RAISED, COMPLETED], [], id="it ends before all was logged"),
        pytest.param([LEADER, APPENDED, COMPLETED, START, *ONE_SECOND], [], id="it is killed before all was logged"),
        pytest.param([LEADER, APPENDED, REFUSED, *ONE_SECOND], [], id="an error has no ISR"),
        pytest.param([LEADER, APPENDED, UNANSWERED, *ONE_SECOND], [], id="acks=0 has no answer"),
        pytest.param([LEADER, COMPLETED, *ONE_SECOND], [], id="where the batch ends was not told"),
        pytest.param(
            [LEADER, APPENDED, RAISED, COMPLETED, COMPLETED, *ONE_SECOND],
            [answered(high_watermark=87)],
            id="a duplicate was appended before",
        ),
    ],
)
def test_what_producers_are_answered(lines: list[str], expected: list[Event]) -> None:
    events, reader = answers(lines)
    assert events == expected
    assert reader.unknown.total() == 0


def test_an_answer_has_the_instant_at_which_it_was_given() -> None:
    lines = LogReader(wording("3.9.1")).events(iter([LEADER, APPENDED, RAISED, COMPLETED, *ONE_SECOND]))
    (given_ns,) = [line.time_ns for _, line, event in lines if event.ev == "produce_resp"]
    assert given_ns // 1_000_000 % 60_000 == 26_300


def test_a_request_in_other_words_is_counted() -> None:
    events, reader = answers([LEADER, APPENDED, COMPLETED.replace("Completed request:", "Request completed ")])
    assert events == []
    assert reader.unknown == {"kafka.request.logger": 1}


def test_the_kept_line_is_what_it_was() -> None:
    assert json.loads(COMPLETED.partition("request:")[2])["totalTimeMs"] == 108.183
