from tests.analysis.fact_rows import Row, claimed, truncated
from tests.checks.answers import fails, passes, table_of, unknown

FOLLOWS = claimed(1, 0, high_watermark=0, end=0)
KNEW = {"latest_epoch": 2, "asked_epoch": 2, "local_epoch": 2, "local_end_offset": 9}


def cut(to: int, **other: int | str | None) -> Row:
    return truncated(
        2, 9, to, high_watermark=3, epoch=3, **(KNEW | {"answer_epoch": 2, "answer_end_offset": 6} | other)
    )


OLDER = {"answer_epoch": 1, "local_epoch": 1, "local_end_offset": 4}
NO_ANSWER = {"answer_epoch": -1, "answer_end_offset": -1, "local_epoch": -1, "local_end_offset": -1}

CASES = {
    "to the end of the common epoch": passes(FOLLOWS, cut(6)),
    "nothing was truncated": passes(FOLLOWS),
    "too far": fails(FOLLOWS, cut(5), offsets=[5], text="where 6 was right"),
    "not far enough": fails(FOLLOWS, cut(7), offsets=[7], text="where 6 was right"),
    "to the own end of an older common epoch": passes(FOLLOWS, cut(4, **OLDER)),
    "to the leader's end of an older epoch that goes on here": fails(
        FOLLOWS, cut(6, **OLDER), text="where 4 was right"
    ),
    "one step back, because the epoch of the answer is not here": passes(
        FOLLOWS, cut(2, answer_epoch=1, local_epoch=0, local_end_offset=2)
    ),
    "no step back, although the epoch of the answer is not here": fails(
        FOLLOWS, cut(6, answer_epoch=1, local_epoch=0, local_end_offset=2)
    ),
    "to the high watermark without any epoch": passes(
        FOLLOWS, cut(3, **NO_ANSWER, latest_epoch=-1, asked_epoch=-1, reason="hw")
    ),
    "to the high watermark when the leader cannot tell": passes(FOLLOWS, cut(3, **NO_ANSWER, reason="hw")),
    "to the high watermark without a request to the leader": fails(
        FOLLOWS, cut(3, **NO_ANSWER, asked_epoch=-1, reason="hw"), text="had not asked"
    ),
    "to the leader's end, beyond which it had come": passes(
        FOLLOWS, cut(6, asked_epoch=-1, answer_epoch=-1, reason="out_of_range")
    ),
    "elsewhere than to the leader's end, beyond which it had come": fails(
        FOLLOWS, cut(5, asked_epoch=-1, answer_epoch=-1, reason="out_of_range"), text="where 6 was right"
    ),
    "to the leader's end, because no epoch so old is here": passes(
        FOLLOWS, cut(6, answer_epoch=1, local_epoch=-1, local_end_offset=-1)
    ),
    "to the leader's end, because it does not tell the epoch that ends there": passes(FOLLOWS, cut(6, answer_epoch=-1)),
    "to the own end of an older epoch, though the leader's epoch ended before": passes(
        FOLLOWS, cut(4, answer_epoch=1, answer_end_offset=3, local_epoch=0, local_end_offset=4)
    ),
    "a log that begins anew or is recovered asks no leader": passes(
        FOLLOWS, cut(0, reason="full"), cut(8, reason="recovery")
    ),
    "an older broker does not say its epochs": unknown(
        FOLLOWS, cut(6, latest_epoch=None), text="do not say latest_epoch"
    ),
    "there are no claims of leadership": unknown(text="leadership_claims"),
}

test_how_far_a_follower_truncates = table_of("I15", CASES)
