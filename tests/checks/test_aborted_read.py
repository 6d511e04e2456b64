from tests.analysis.fact_rows import read, remark, sent
from tests.checks.answers import NOT_UNIQUE, fails, passes, table_of, unknown

FAILED = sent("b", outcome="fail", error="MESSAGE_TOO_LARGE")

CASES = {
    "what failed was not read": passes(sent("a", 0), FAILED, read("a", 0)),
    "what failed was read": fails(
        sent("a", 0), FAILED, read("b", 1), offsets=[1], text="b was read at orders-0 offset 1"
    ),
    "a value with an unknown outcome was read": passes(sent("a"), read("a", 0)),
    "two readers are one finding": fails(FAILED, read("b", 1), read("b", 1, process="c1"), offsets=[1]),
    "it was read in two epochs, and came up in the first": fails(
        FAILED, read("b", 1, leader_epoch=4), read("b", 1, process="c1", leader_epoch=3), epochs=[3]
    ),
    "more readers than can be shown are one finding": fails(
        FAILED, *(read("b", 1, process=f"c{number}") for number in range(13)), offsets=[1]
    ),
    "values are not unique": unknown(FAILED, read("b", 1), NOT_UNIQUE),
    "the clients' history has holes": unknown(
        FAILED, read("b", 1), remark("operations/p0.jsonl", "unreadable lines", 1)
    ),
    "nothing was read": unknown(FAILED, text="polls"),
}

CASES |= CASES["what failed was not read"].without_each("sends", "polls")

test_values_of_failed_sends = table_of("aborted-read", CASES)
