import pytest

from harness.analysis.schemas import TORN
from tests.analysis.fact_rows import elected_uncleanly, led, read, remark, sent
from tests.checks.answers import (
    FAIL,
    FROM_ANYWHERE,
    NOT_UNIQUE,
    PASS,
    POWER_LOSS,
    UNCLEAN,
    UNKNOWN,
    Answer,
    Case,
    answers_of,
    confirm,
    without_each,
)

pytestmark = pytest.mark.spark

PASSED = [sent("a", 0), sent("b", 1, index=1), read("b", 1)]

CASES = {
    "all is read": Case(rows=[*PASSED, read("a", 0)], verdict=PASS, severities=[]),
    "an acknowledged record was passed unseen": Case(
        rows=PASSED,
        verdict=FAIL,
        severities=["violation"],
        offsets=[0],
        text="a was acknowledged (acks=all) at orders-0 offset 0, readers came to offset 1",
    ),
    "it was read elsewhere only": Case(
        rows=[*PASSED, read("a", 0, partition=1)], verdict=FAIL, severities=["violation"]
    ),
    "it was read at another offset": Case(rows=[*PASSED, read("a", 5)], verdict=PASS, severities=[]),
    "acks=1 promises little": Case(
        rows=[sent("a", 0, acks=1), *PASSED[1:]], verdict=PASS, severities=["expected"], text="(acks=1)"
    ),
    "it was never acknowledged, though the client names an offset": Case(
        rows=[sent("a", 0, outcome="info"), *PASSED[1:]], verdict=PASS, severities=[]
    ),
    "it was never acknowledged": Case(rows=[sent("a"), *PASSED[1:]], verdict=PASS, severities=[]),
    "an unclean election followed": Case(
        rows=[*PASSED, elected_uncleanly(2, 1)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "unclean elections before and after": Case(
        rows=[*PASSED, elected_uncleanly(2, 0), elected_uncleanly(3, 1)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "an unclean election followed, which the scenario allows": Case(
        rows=[*PASSED, led(2, 1, unclean=True)], settings=UNCLEAN, verdict=PASS, severities=["expected"]
    ),
    "an unclean election followed that was not allowed, and a clean one": Case(
        rows=[*PASSED, led(2, 1, unclean=True, unclean_allowed=False), led(3, 2)],
        settings=UNCLEAN,
        verdict=FAIL,
        severities=["violation"],
    ),
    "it was written after that": Case(
        rows=[*PASSED, elected_uncleanly(2, 0)], settings=UNCLEAN, verdict=FAIL, severities=["violation"]
    ),
    "nobody knows in which epoch it was written": Case(
        rows=[sent("a", 0, leader_epoch=None), *PASSED[1:], elected_uncleanly(2, 0)],
        settings=UNCLEAN,
        verdict=PASS,
        severities=["expected"],
    ),
    "the power was cut": Case(rows=PASSED, settings=POWER_LOSS, verdict=PASS, severities=["expected"]),
    "readers began behind it": Case(rows=PASSED, settings=FROM_ANYWHERE, verdict=PASS, severities=[]),
    "readers began before it": Case(
        rows=[*PASSED, sent("c", 2, index=2), read("d", 3)],
        settings=FROM_ANYWHERE,
        verdict=FAIL,
        severities=["violation"],
        offsets=[2],
        shown='"offset":3,"value":"d"',
    ),
    "another record was read in its place, first of all": Case(
        rows=[sent("a", 0), read("b", 0), read("c", 1)],
        settings=FROM_ANYWHERE,
        verdict=FAIL,
        severities=["violation"],
        offsets=[0],
    ),
    "readers did not come so far": Case(rows=[sent("a", 3), read("b", 1)], verdict=PASS, severities=[]),
    "another record was read in its place, last of all: unseen instead": Case(
        rows=[sent("a", 1), read("b", 1)], verdict=PASS, severities=[]
    ),
    "nobody read anything": Case(rows=[sent("a", 0)], verdict=UNKNOWN, severities=[]),
    "value ids are not unique": Case(
        rows=[*PASSED, NOT_UNIQUE], verdict=UNKNOWN, text="value ids: 1 sent more than once"
    ),
    "the history has holes": Case(
        rows=[*PASSED, remark("operations/c0.jsonl", "unreadable lines", 1)], verdict=UNKNOWN, text="c0.jsonl: 1"
    ),
    "a broker's log has holes, of which clients say nothing": Case(
        rows=[*PASSED, remark("brokers/1/x", "missing lines, by their numbers", 2)], verdict=FAIL
    ),
    "a torn last line is no hole": Case(rows=[*PASSED, remark("operations/c0.jsonl", TORN, 1)], verdict=FAIL),
}

CASES |= without_each(CASES["all is read"], "sends", "polls")

answers = answers_of("lost-write", CASES)


@pytest.mark.parametrize("case", CASES)
def test_acknowledged_records_before_the_last_one_read(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])


def test_the_finding_shows_both_sides(answers: dict[str, Answer]) -> None:
    (evidence,) = answers["an acknowledged record was passed unseen"].evidence
    assert [event[:14] for event in evidence] == ['{"fact":"sends', '{"fact":"polls']
