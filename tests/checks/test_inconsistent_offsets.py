import pytest

from tests.analysis.fact_rows import elected_uncleanly, read, sent
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

TWO = [read("a", 0), read("b", 0, process="c1")]

CASES = {
    "all agree": Case(rows=[sent("a", 0), read("a", 0), read("b", 1)], verdict=PASS, severities=[]),
    "two readers read two values": Case(
        rows=TWO, verdict=FAIL, severities=["violation"], offsets=[0], text="orders-0 offset 0 holds a and b"
    ),
    "a producer's acknowledgement names another value": Case(
        rows=[sent("a", 0), read("b", 0)], verdict=FAIL, severities=["violation"]
    ),
    "with acks=1 the acknowledged value may change": Case(
        rows=[sent("a", 0, acks=1), read("b", 0)], verdict=PASS, severities=[]
    ),
    "two partitions": Case(rows=[read("a", 0), read("b", 0, partition=1)], verdict=PASS, severities=[]),
    "an unclean election between": Case(
        rows=[*TWO, elected_uncleanly(2, 1)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "an unclean election, after which the second value was written": Case(
        rows=[TWO[0], read("b", 0, process="c1", leader_epoch=1), elected_uncleanly(2, 1)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "nobody read anything": Case(rows=[sent("a", 0)], verdict=UNKNOWN, severities=[]),
}

answers = answers_of("inconsistent-offsets", CASES)


@pytest.mark.parametrize("case", CASES)
def test_one_offset_and_the_values_seen_there(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])


def test_the_finding_shows_who_says_what(answers: dict[str, Answer]) -> None:
    (evidence,) = answers["two readers read two values"].evidence
    assert len(evidence) == 2
