from tests.analysis.fact_rows import read, remark, sent
from tests.checks.answers import fails, passes, table_of, unknown

CASES = {
    "it was sent": passes(sent("a", 0), read("a", 0)),
    "it was sent, with an unknown outcome": passes(sent("a"), read("a", 0)),
    "it was never sent": fails(sent("a", 0), read("b", 1), text="b was read at orders-0 offset 1"),
    "two readers got a value that was never sent, the other in a later epoch": fails(
        sent("a", 0), read("b", 1, leader_epoch=4), read("b", 1, process="c1", leader_epoch=3), epochs=[3]
    ),
    "it was sent to another topic": fails(sent("a", 0), sent("b", 0, topic="other"), read("b", 1)),
    "no producer of the load writes to that topic": passes(sent("a", 0), read("b", 1, topic="other")),
    "nothing was read": unknown(sent("a", 0)),
    "sends may be missing from the history": unknown(
        sent("a", 0), read("b", 1), remark("operations/p0.jsonl", "unreadable lines", 3)
    ),
}

CASES |= CASES["it was sent"].without_each("sends", "polls")

test_what_was_read_was_sent = table_of("phantom", CASES)
