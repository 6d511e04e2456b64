"""What the answers of a cluster that was asked for topics mean."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.errors import ClusterError
from harness.experiment.topics import problems_of


def answer(code: int | None) -> "Future[None]":
    future: Future[None] = Future()
    if code is None:
        future.set_result(None)
    else:
        future.set_exception(KafkaException(KafkaError(code)))
    return future


@pytest.mark.parametrize(
    ("code", "theirs", "problems"),
    [
        pytest.param(None, {"orders"}, [], id="it was created"),
        pytest.param(KafkaError.TOPIC_ALREADY_EXISTS, set(), [], id="an earlier try has created it"),
        pytest.param(KafkaError.REQUEST_TIMED_OUT, {"orders"}, ["orders"], id="it is tried again"),
    ],
)
def test_a_topic_is_there_or_tried_again(code: int | None, theirs: set[str], problems: list[str]) -> None:
    assert [*problems_of({"orders": answer(code)}, theirs)] == problems


def test_a_topic_of_somebody_else_is_not_taken() -> None:
    with pytest.raises(ClusterError, match="orders exists already, and this run did not create it"):
        problems_of({"orders": answer(KafkaError.TOPIC_ALREADY_EXISTS)}, {"orders"})
