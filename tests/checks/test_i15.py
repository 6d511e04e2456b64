import pytest

from tests.analysis.fact_rows import Row, claimed, truncated
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

FOLLOWS = claimed(1, 0, high_watermark=0, end=0)
KNEW = {"latest_epoch": 2, "asked_epoch": 2, "local_epoch": 2, "local_end_offset": 9}


def cut(to: int, **other: int | str | None) -> Row:
    return truncated(
        2, 9, to, high_watermark=3, epoch=3, **(KNEW | {"answer_epoch": 2, "answer_end_offset": 6} | other)
    )


OLDER = {"answer_epoch": 1, "local_epoch": 1, "local_end_offset": 4}
NO_ANSWER = {"answer_epoch": -1, "answer_end_offset": -1, "local_epoch": -1, "local_end_offset": -1}

CASES = {
    "to the end of the common epoch": Case(rows=[FOLLOWS, cut(6)], verdict=PASS),
    "nothing was truncated": Case(rows=[FOLLOWS], verdict=PASS),
    "too far": Case(rows=[FOLLOWS, cut(5)], verdict=FAIL, offsets=[5], text="where 6 was right"),
    "not far enough": Case(rows=[FOLLOWS, cut(7)], verdict=FAIL, offsets=[7], text="where 6 was right"),
    "to the own end of an older common epoch": Case(rows=[FOLLOWS, cut(4, **OLDER)], verdict=PASS),
    "to the leader's end of an older epoch that goes on here": Case(
        rows=[FOLLOWS, cut(6, **OLDER)], verdict=FAIL, text="where 4 was right"
    ),
    "one step back, because the epoch of the answer is not here": Case(
        rows=[FOLLOWS, cut(2, answer_epoch=1, local_epoch=0, local_end_offset=2)], verdict=PASS
    ),
    "no step back, although the epoch of the answer is not here": Case(
        rows=[FOLLOWS, cut(6, answer_epoch=1, local_epoch=0, local_end_offset=2)], verdict=FAIL
    ),
    "to the high watermark without any epoch": Case(
        rows=[FOLLOWS, cut(3, **NO_ANSWER, latest_epoch=-1, asked_epoch=-1, reason="hw")], verdict=PASS
    ),
    "to the high watermark when the leader cannot tell": Case(
        rows=[FOLLOWS, cut(3, **NO_ANSWER, reason="hw")], verdict=PASS
    ),
    "to the high watermark without a request to the leader": Case(
        rows=[FOLLOWS, cut(3, **NO_ANSWER, asked_epoch=-1, reason="hw")], verdict=FAIL, text="had not asked"
    ),
    "to the leader's end, beyond which it had come": Case(
        rows=[FOLLOWS, cut(6, asked_epoch=-1, answer_epoch=-1, reason="out_of_range")], verdict=PASS
    ),
    "elsewhere than to the leader's end, beyond which it had come": Case(
        rows=[FOLLOWS, cut(5, asked_epoch=-1, answer_epoch=-1, reason="out_of_range")],
        verdict=FAIL,
        text="where 6 was right",
    ),
    "to the leader's end, because no epoch so old is here": Case(
        rows=[FOLLOWS, cut(6, answer_epoch=1, local_epoch=-1, local_end_offset=-1)], verdict=PASS
    ),
    "to the leader's end, because it does not tell the epoch that ends there": Case(
        rows=[FOLLOWS, cut(6, answer_epoch=-1)], verdict=PASS
    ),
    "to the own end of an older epoch, though the leader's epoch ended before": Case(
        rows=[FOLLOWS, cut(4, answer_epoch=1, answer_end_offset=3, local_epoch=0, local_end_offset=4)], verdict=PASS
    ),
    "a log that begins anew or is recovered asks nobody": Case(
        rows=[FOLLOWS, cut(0, reason="full"), cut(8, reason="recovery")], verdict=PASS
    ),
    "an older broker does not say its epochs": Case(
        rows=[FOLLOWS, cut(6, latest_epoch=None)], verdict=UNKNOWN, text="do not say latest_epoch"
    ),
    "there are no claims of leadership": Case(rows=[], verdict=UNKNOWN, text="leadership_claims"),
}

answers = answers_of("I15", CASES)


@pytest.mark.parametrize("case", CASES)
def test_how_far_a_follower_truncates(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
