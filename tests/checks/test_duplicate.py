import pytest

from tests.analysis.fact_rows import elected_uncleanly, read, sent
from tests.checks.answers import (
    FAIL,
    NOT_IDEMPOTENT,
    NOT_UNIQUE,
    PASS,
    UNCLEAN,
    UNKNOWN,
    Answer,
    Case,
    answers_of,
    confirm,
    without_each,
)

pytestmark = pytest.mark.spark

TWICE = [sent("a", 0), read("a", 0), read("a", 4)]

CASES = {
    "two readers, one place": Case(
        rows=[sent("a", 0), read("a", 0), read("a", 0, process="c1")], verdict=PASS, severities=[]
    ),
    "two offsets": Case(
        rows=TWICE, verdict=FAIL, severities=["violation"], text="a was read at orders-0 offset 0 and orders-0 offset 4"
    ),
    "two partitions": Case(
        rows=[sent("a", 0), read("a", 0), read("a", 0, partition=1)], verdict=FAIL, severities=["violation"]
    ),
    "a retry without idempotence": Case(rows=TWICE, settings=NOT_IDEMPOTENT, verdict=PASS, severities=["expected"]),
    "an unclean election between": Case(
        rows=[*TWICE, elected_uncleanly(2, 1)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "an unclean election, after which it was written again": Case(
        rows=[*TWICE[:2], read("a", 4, leader_epoch=1), elected_uncleanly(2, 1)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "nobody read anything": Case(rows=[sent("a", 0)], verdict=UNKNOWN, severities=[]),
    "it was sent twice": Case(rows=[*TWICE, NOT_UNIQUE], verdict=UNKNOWN, severities=[]),
}

CASES |= without_each(CASES["two readers, one place"], "sends", "polls")

answers = answers_of("duplicate", CASES)


@pytest.mark.parametrize("case", CASES)
def test_values_and_the_places_where_they_were_read(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
