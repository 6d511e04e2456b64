import pytest

from tests.analysis.fact_rows import sent
from tests.analysis.protocol_rows import overtaken
from tests.checks.answers import FAIL, NOT_IDEMPOTENT, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

SENT = [sent("a", 7), sent("b", 4)]
TOGETHER = overtaken(acknowledged_ns=5, invoke_ns=2)

CASES = {
    "they lie in order": Case(rows=SENT, verdict=PASS),
    "a retry overtakes an idempotent one": Case(
        rows=[*SENT, TOGETHER], verdict=FAIL, offsets=[4], severities=["violation"]
    ),
    "a retry overtakes without idempotence": Case(
        rows=[*SENT, TOGETHER], settings=NOT_IDEMPOTENT, verdict=PASS, severities=["expected"]
    ),
    "they were not under way together": Case(
        rows=[*SENT, overtaken(acknowledged_ns=2, invoke_ns=5)], verdict=PASS, severities=[]
    ),
    "nobody sent anything": Case(rows=[], verdict=UNKNOWN, text="sends"),
}

answers = answers_of("int-nonmonotonic-send", CASES)


@pytest.mark.parametrize("case", CASES)
def test_order_of_sends_under_way_together(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
