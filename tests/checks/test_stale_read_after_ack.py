from tests.analysis.fact_rows import elected_uncleanly, sent, state
from tests.analysis.protocol_rows import ended_at, injected
from tests.checks.answers import UNCLEAN, UNREADABLE, excused, fails, passes, table_of, unknown

SETTLED = state(0, leader=1, epoch=0, isr=[1, 2], time_ns=0)
TOLD = [SETTLED, sent("a", 4, complete_ns=1_000_000_000)]

CASES = {
    "the end is past it": passes(*TOLD, ended_at(5, at_s=9)),
    "the end is before it": fails(
        *TOLD, ended_at(4, at_s=9), offsets=[4], text="after a had been acknowledged at offset 4"
    ),
    "the end is past an earlier one, and before a later one": fails(
        *TOLD, sent("b", 6, complete_ns=2_000_000_000), ended_at(5, at_s=9), offsets=[5]
    ),
    "another answer is past it": fails(*TOLD, ended_at(4, at_s=9), ended_at(9, at_s=10), offsets=[4]),
    "of two that it is before the furthest is named": fails(
        *TOLD, sent("b", 6, complete_ns=2_000_000_000), ended_at(4, at_s=9), text="after b had been acknowledged at"
    ),
    "the time of the partition's change is unknown": fails(TOLD[1], ended_at(4, at_s=1.5), offsets=[4]),
    "the partition is just settling": passes(*TOLD, ended_at(4, at_s=2)),
    "the partition has only just settled": fails(*TOLD, ended_at(4, at_s=2.000000001), offsets=[4]),
    "it was acknowledged after the question": passes(
        SETTLED, sent("a", 4, complete_ns=10_000_000_000), ended_at(4, at_s=9)
    ),
    "the leader alone had acknowledged it": passes(SETTLED, sent("a", 4, complete_ns=1, acks=1), ended_at(4, at_s=9)),
    "the partition has not settled": passes(
        *TOLD, state(1, leader=1, epoch=0, isr=[1], time_ns=8_000_000_000), ended_at(4, at_s=9)
    ),
    "a fault has only just been healed": passes(*TOLD, injected(healed_s=1), injected(healed_s=8), ended_at(4, at_s=9)),
    "an unclean election between": excused(*TOLD, ended_at(4, at_s=9), elected_uncleanly(2, 1), settings=UNCLEAN),
    "the clients' history has holes": unknown(*TOLD, ended_at(5, at_s=9), UNREADABLE, text="unreadable line"),
    "no end was requested": unknown(*TOLD, text="end_offsets"),
}

CASES |= CASES["the end is past it"].without_each("sends", "end_offsets")

test_ends_that_consumers_are_told = table_of("stale-read-after-ack", CASES)
