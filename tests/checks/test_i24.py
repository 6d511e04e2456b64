import pytest

from tests.analysis.protocol_rows import served
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

CASES = {
    "below the high watermark": Case(rows=[served(4, high_watermark=5)], verdict=PASS),
    "at the high watermark": Case(
        rows=[served(5, high_watermark=5)], verdict=FAIL, offsets=[5], text="offset 5 with its high watermark at 5"
    ),
    "in the epoch that the consumer believes in": Case(rows=[served(4, high_watermark=5, believed=3)], verdict=PASS),
    "in another epoch": Case(
        rows=[served(4, high_watermark=5, believed=2)], verdict=FAIL, text="that believed in epoch 2"
    ),
    "nobody was served": Case(rows=[], verdict=UNKNOWN, text="consumer_fetches"),
}

answers = answers_of("I24", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_consumers_are_served(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
