from tests.analysis.fact_rows import elected_uncleanly, sent
from tests.analysis.protocol_rows import overtaken
from tests.checks.answers import UNCLEAN, UNREADABLE, excused, fails, passes, table_of, unknown

SENT = [sent("a", 7), sent("b", 4)]
LATER = overtaken(acknowledged_ns=2, invoke_ns=5)

CASES = {
    "they lie in order": passes(*SENT),
    "one that was sent later lies before": fails(*SENT, LATER, offsets=[4], text="b of p0 is at orders-0 offset 4"),
    "they were under way together": passes(*SENT, overtaken(acknowledged_ns=5, invoke_ns=2)),
    "it was sent at the instant at which the other was acknowledged, so no order is known": passes(
        *SENT, overtaken(acknowledged_ns=5, invoke_ns=5)
    ),
    "the leader alone had acknowledged it": excused(*SENT, overtaken(acknowledged_ns=2, invoke_ns=5, acks=1)),
    "an unclean election between": excused(*SENT, LATER, elected_uncleanly(2, 1), settings=UNCLEAN),
    "an unclean election between, whose leader took the later one": excused(
        *SENT, overtaken(acknowledged_ns=2, invoke_ns=5, leader_epoch=2), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "an unclean election before both": fails(
        *SENT,
        overtaken(acknowledged_ns=2, invoke_ns=5, leader_epoch=2, earlier_leader_epoch=2),
        elected_uncleanly(2, 1),
        settings=UNCLEAN,
    ),
    "the clients' history has holes": unknown(*SENT, LATER, UNREADABLE, text="unreadable line"),
    "nothing was sent": unknown(text="sends"),
}

test_order_of_sends_one_after_the_other = table_of("nonmonotonic-send", CASES)
