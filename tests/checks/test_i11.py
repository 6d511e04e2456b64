import pytest

from tests.analysis.fact_rows import claimed, elected_uncleanly, led, marked, truncated
from tests.checks.answers import FAIL, PASS, POWER_LOSS, UNCLEAN, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

RISE = marked(1, 0, 5, 5, seq=1)

CASES = {
    "it rises within the log": Case(rows=[RISE, marked(1, 5, 7, 9, seq=2)], verdict=PASS),
    "it passes the log end": Case(rows=[marked(1, 0, 6, 5)], verdict=FAIL, text="never passes the log end"),
    "a new leader is past it": Case(
        rows=[RISE, claimed(1, 1, high_watermark=9, end=5)], verdict=FAIL, text="never passes"
    ),
    "it goes back under one leader": Case(rows=[RISE, marked(1, 5, 3, 5, seq=2)], verdict=FAIL, text="from 5 to 3"),
    "it goes back from where the leader began": Case(
        rows=[claimed(1, 0, high_watermark=8, end=8), marked(1, 0, 5, 8, seq=1)], verdict=FAIL, text="from 8 to 5"
    ),
    "it goes back to where it never was before": Case(
        rows=[RISE, marked(1, 5, 7, 9, seq=2), marked(1, 7, 6, 9, seq=3)], verdict=FAIL, text="from 7 to 6"
    ),
    "what it had as a follower is no promise of a leader": Case(
        rows=[claimed(1, 0, high_watermark=8, end=8, role="follower"), marked(1, 0, 5, 8, seq=1)], verdict=PASS
    ),
    "another epoch begins lower": Case(rows=[RISE, marked(1, 0, 3, 5, seq=2, leader_epoch=1)], verdict=PASS),
    "another life of the broker begins lower": Case(
        rows=[RISE, marked(1, 0, 3, 5, seq=0, incarnation="other")], verdict=PASS
    ),
    "a follower may go back": Case(rows=[RISE, marked(1, 5, 3, 5, seq=2, role="follower")], verdict=PASS),
    "no high watermark was seen": Case(rows=[], verdict=UNKNOWN, text="high_watermarks"),
}

answers = answers_of("I11", CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_course_of_the_high_watermark(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])


CUT = truncated(2, 9, 4, high_watermark=6, epoch=2)

CUTS = {
    "down to the high watermark": Case(
        rows=[RISE, truncated(2, 9, 6, high_watermark=6, epoch=2)], verdict=PASS, severities=[], offsets=[]
    ),
    "below the high watermark": Case(rows=[RISE, CUT], verdict=FAIL, severities=["violation"], offsets=[4]),
    "after an unclean election": Case(
        rows=[RISE, CUT, elected_uncleanly(1, 2)], settings=UNCLEAN, verdict=PASS, severities=["expected"], offsets=[4]
    ),
    "before an unclean election": Case(
        rows=[RISE, CUT, elected_uncleanly(1, 3)], settings=UNCLEAN, verdict=FAIL, severities=["violation"], offsets=[4]
    ),
    "long after an unclean election that it had followed": Case(
        rows=[RISE, truncated(2, 9, 4, high_watermark=6, epoch=3, asked_epoch=2), elected_uncleanly(1, 2)],
        settings=UNCLEAN,
        verdict=FAIL,
        severities=["violation"],
        offsets=[4],
    ),
    "not allowed": Case(
        rows=[RISE, CUT, led(1, 2, unclean=True, unclean_allowed=False)],
        verdict=FAIL,
        severities=["violation"],
        offsets=[4],
    ),
    "the power was cut": Case(
        rows=[RISE, CUT], settings=POWER_LOSS, verdict=PASS, severities=["expected"], offsets=[4]
    ),
}

cuts = answers_of("I11", CUTS)


@pytest.mark.parametrize("case", CUTS)
def test_what_is_truncated(case: str, cuts: dict[str, Answer]) -> None:
    confirm(CUTS[case], cuts[case])
