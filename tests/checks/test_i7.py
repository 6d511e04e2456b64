from tests.analysis.fact_rows import claimed, remark, truncated
from tests.analysis.protocol_rows import appended, waited_for
from tests.checks.answers import fails, passes, table_of, unknown, without_each

CASES = {
    "every member had it": passes(waited_for([1, 2], 5), appended(1, 0, 4), appended(2, 0, 4)),
    "a member had less": fails(
        waited_for([1, 2], 5),
        appended(1, 0, 4),
        appended(2, 0, 3),
        offsets=[4],
        text="the log of broker 2 had come to 4",
    ),
    "a member had nothing": fails(waited_for([1, 2], 5), appended(1, 0, 4), offsets=[0]),
    "a member had it from an earlier epoch": passes(
        waited_for([1, 2], 5, leader_epoch=1), appended(1, 0, 4), appended(2, 0, 4)
    ),
    "a member got it in a later epoch only": fails(
        waited_for([1, 2], 5), appended(1, 0, 4), appended(2, 0, 4, epoch=1)
    ),
    "a member had it when the epoch began": passes(
        waited_for([1, 2], 5), appended(1, 0, 4), claimed(2, 0, high_watermark=0, end=5)
    ),
    "a member began anew behind it": passes(
        waited_for([1, 2], 5), appended(1, 0, 4), truncated(2, 0, 5, high_watermark=0, epoch=0, reason="full")
    ),
    "a member had some in an earlier epoch, and came there in several steps": passes(
        waited_for([1, 2], 5, leader_epoch=1),
        appended(1, 0, 4),
        appended(2, 0, 1),
        appended(2, 2, 2, epoch=1),
        appended(2, 3, 4, epoch=1),
    ),
    "a member cut its log back to there": passes(
        waited_for([1, 2], 5), appended(1, 0, 4), truncated(2, 9, 5, high_watermark=0, epoch=0)
    ),
    "a broker's log has holes": unknown(
        waited_for([1, 2], 5), appended(1, 0, 4), remark("brokers/2/x", "missing lines, by their numbers", 2)
    ),
    "no high watermark ever rose": unknown(appended(1, 0, 4), text="leader_isrs"),
}

CASES |= without_each(CASES["every member had it"], "leader_isrs", "appends")

test_what_the_leaders_own_isr_has = table_of("I7", CASES)
