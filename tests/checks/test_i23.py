import pytest

from tests.analysis.fact_rows import replica
from tests.analysis.protocol_rows import topic
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm, without_each

pytestmark = pytest.mark.spark

OTHER = [topic("other", present=True), replica(1, 5, topic="other")]

CASES = {
    "it is there": Case(rows=[topic(present=True), replica(1, 5)], verdict=PASS),
    "it is gone altogether": Case(rows=[*OTHER, topic(present=False)], verdict=PASS),
    "a log is left": Case(
        rows=[*OTHER, topic(present=False), replica(2, 5)], verdict=FAIL, text="the log of partition 0 on broker 2"
    ),
    "its configuration is left": Case(
        rows=[*OTHER, topic(present=False, configured=True)], verdict=FAIL, text="its configuration is still there"
    ),
    "its deletion waits": Case(rows=[topic(present=False, deletion_pending=True), replica(2, 5)], verdict=PASS),
    "no topic was ever seen": Case(rows=[replica(2, 5)], verdict=UNKNOWN, text="topics"),
}

CASES |= without_each(CASES["it is there"], "topics", "replicas")

answers = answers_of("I23", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_is_left_of_a_deleted_topic(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
