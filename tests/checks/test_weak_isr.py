from tests.analysis.fact_rows import claimed, truncated
from tests.analysis.protocol_rows import appended, waited_for
from tests.checks.answers import UNHEARD, fails, passes, table_of, unknown

WAITED = [waited_for([1, 2], 5), appended(1, 0, 4)]

CASES = {
    "every member had it": passes(*WAITED, appended(2, 0, 4)),
    "a member had less": fails(*WAITED, appended(2, 0, 3), offsets=[4], text="the log of broker 2 had come to 4"),
    "a member had nothing": fails(*WAITED, offsets=[0]),
    "a member had it from an earlier epoch": passes(
        waited_for([1, 2], 5, leader_epoch=1), appended(1, 0, 4), appended(2, 0, 4)
    ),
    "a member got it in a later epoch only": fails(*WAITED, appended(2, 0, 4, epoch=1)),
    "a member had it when the epoch began": passes(*WAITED, claimed(2, 0, high_watermark=0, end=5)),
    "a member began anew behind it": passes(*WAITED, truncated(2, 0, 5, high_watermark=0, epoch=0, reason="full")),
    "a member had some in an earlier epoch, and came there in several steps": passes(
        waited_for([1, 2], 5, leader_epoch=1),
        appended(1, 0, 4),
        appended(2, 0, 1),
        appended(2, 2, 2, epoch=1),
        appended(2, 3, 4, epoch=1),
    ),
    "a member cut its log back to there": passes(*WAITED, truncated(2, 9, 5, high_watermark=0, epoch=0)),
    "a broker's log has holes": unknown(*WAITED, UNHEARD),
    "no high watermark ever rose": unknown(appended(1, 0, 4), text="leader_isrs"),
}

CASES |= CASES["every member had it"].without_each("leader_isrs", "appends")

test_what_the_leaders_own_isr_has = table_of("I7", CASES)
