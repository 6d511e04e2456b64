import pytest

from tests.analysis.fact_rows import elected_uncleanly, sent
from tests.analysis.protocol_rows import overtaken
from tests.checks.answers import FAIL, PASS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

SENT = [sent("a", 7), sent("b", 4)]
LATER = overtaken(acknowledged_ns=2, invoke_ns=5)

CASES = {
    "they lie in order": Case(rows=SENT, verdict=PASS),
    "one that was sent later lies before": Case(
        rows=[*SENT, LATER],
        verdict=FAIL,
        offsets=[4],
        severities=["violation"],
        text="b of p0 lies at orders-0 offset 4",
    ),
    "they were under way together": Case(
        rows=[*SENT, overtaken(acknowledged_ns=5, invoke_ns=2)], verdict=PASS, severities=[]
    ),
    "it was sent at the instant at which the other was acknowledged, so no order is known": Case(
        rows=[*SENT, overtaken(acknowledged_ns=5, invoke_ns=5)], verdict=PASS, severities=[]
    ),
    "the leader alone had acknowledged it": Case(
        rows=[*SENT, overtaken(acknowledged_ns=2, invoke_ns=5, acks=1)], verdict=PASS, severities=["expected"]
    ),
    "an unclean election between": Case(
        rows=[*SENT, LATER, elected_uncleanly(2, 1)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "an unclean election between, whose leader took the later one": Case(
        rows=[*SENT, overtaken(acknowledged_ns=2, invoke_ns=5, leader_epoch=2), elected_uncleanly(2, 1)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "an unclean election before both": Case(
        rows=[
            *SENT,
            overtaken(acknowledged_ns=2, invoke_ns=5, leader_epoch=2, earlier_leader_epoch=2),
            elected_uncleanly(2, 1),
        ],
        settings=UNCLEAN,
        verdict=FAIL,
        severities=["violation"],
    ),
    "nobody sent anything": Case(rows=[], verdict=UNKNOWN, text="sends"),
}

answers = answers_of("nonmonotonic-send", CASES)


@pytest.mark.parametrize("case", CASES)
def test_order_of_sends_one_after_the_other(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
