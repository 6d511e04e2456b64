from tests.analysis.fact_rows import claimed, elected_uncleanly, led, marked, truncated
from tests.checks.answers import POWER_LOSS, UNCLEAN, excused, fails, passes, table_of, unknown

RISE = marked(1, 0, 5, 5, seq=1)

CASES = {
    "it rises within the log": passes(RISE, marked(1, 5, 7, 9, seq=2)),
    "it passes the log end": fails(marked(1, 0, 6, 5), text="never passes the log end"),
    "a new leader is past it": fails(RISE, claimed(1, 1, high_watermark=9, end=5), text="never passes"),
    "it goes back under one leader": fails(RISE, marked(1, 5, 3, 5, seq=2), text="from 5 to 3"),
    "a rise after it has gone back is no second finding": fails(
        RISE, marked(1, 5, 3, 5, seq=2), marked(1, 3, 6, 6, seq=3), text="from 5 to 3"
    ),
    "it goes back from where the leader had begun highest": fails(
        claimed(1, 0, high_watermark=8, end=8),
        claimed(1, 0, high_watermark=5, end=8, seq=1),
        marked(1, 6, 9, 9, seq=2),
        text="from 8 to 6",
    ),
    "it goes back from where the leader began": fails(
        claimed(1, 0, high_watermark=8, end=8), marked(1, 0, 5, 8, seq=1), text="from 8 to 5"
    ),
    "it goes back to where it never was before": fails(
        RISE, marked(1, 5, 7, 9, seq=2), marked(1, 7, 6, 9, seq=3), text="from 7 to 6"
    ),
    "what it had as a follower is no promise of a leader": passes(
        claimed(1, 0, high_watermark=8, end=8, role="follower"), marked(1, 0, 5, 8, seq=1)
    ),
    "another epoch begins lower": passes(RISE, marked(1, 0, 3, 5, seq=2, leader_epoch=1)),
    "another life of the broker begins lower": passes(RISE, marked(1, 0, 3, 5, seq=0, incarnation="other")),
    "a follower may go back": passes(RISE, marked(1, 5, 3, 5, seq=2, role="follower")),
    "two threads log their rises, the later one first": passes(
        RISE, marked(1, 7, 9, 9, seq=2), marked(1, 5, 7, 9, seq=3)
    ),
    "it has gone back without a word": fails(
        RISE, marked(1, 5, 9, 9, seq=2), marked(1, 7, 11, 11, seq=3), text="from 9 to 7"
    ),
    "it has gone back before the later one is told of": fails(
        RISE, marked(1, 7, 11, 11, seq=2), marked(1, 5, 9, 9, seq=3), text="from 9 to 7"
    ),
    "it rises twice from where the leader began": fails(
        claimed(1, 0, high_watermark=5, end=9), marked(1, 5, 7, 9, seq=1), marked(1, 5, 7, 9, seq=2), text="from 7 to 5"
    ),
    "a rise to where it was": passes(RISE, marked(1, 5, 5, 9, seq=2), marked(1, 5, 7, 9, seq=3)),
    "a rise to where it was, told of after the next one": passes(
        RISE, marked(1, 5, 7, 9, seq=2), marked(1, 5, 5, 9, seq=3)
    ),
    "no high watermark was seen": unknown(text="high_watermarks"),
}

test_the_course_of_the_high_watermark = table_of("I11", CASES)

CUT = truncated(2, 9, 4, high_watermark=6, epoch=2)

CUTS = {
    "an empty log, which begins anew with a whole batch": passes(
        RISE, truncated(2, 6, 4, high_watermark=6, epoch=2, reason="full")
    ),
    "a log with uncommitted records, which begins anew": fails(
        RISE, truncated(2, 7, 4, high_watermark=6, epoch=2, reason="full"), text="from 7 to 4"
    ),
    "down to the high watermark": passes(RISE, truncated(2, 9, 6, high_watermark=6, epoch=2)),
    "below the high watermark": fails(RISE, CUT, offsets=[4]),
    "after an unclean election": excused(RISE, CUT, elected_uncleanly(1, 2), settings=UNCLEAN, offsets=[4]),
    "before an unclean election": fails(RISE, CUT, elected_uncleanly(1, 3), settings=UNCLEAN, offsets=[4]),
    "long after an unclean election that it had followed": fails(
        RISE,
        truncated(2, 9, 4, high_watermark=6, epoch=3, asked_epoch=2),
        elected_uncleanly(1, 2),
        settings=UNCLEAN,
        offsets=[4],
    ),
    "not allowed": fails(RISE, CUT, led(1, 2, unclean=True, unclean_allowed=False), offsets=[4]),
    "the power was cut": excused(RISE, CUT, settings=POWER_LOSS, offsets=[4]),
}

test_what_is_truncated = table_of("I11", CUTS)
