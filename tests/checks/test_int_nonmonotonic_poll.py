from tests.analysis.fact_rows import read
from tests.analysis.protocol_rows import stepped
from tests.checks.answers import UNREADABLE, fails, passes, table_of, unknown

SEEN = [read("a", 2)]

CASES = {
    "it gives them in order": passes(*SEEN),
    "it goes back": fails(*SEEN, stepped(5, 2, polls=(1, 1)), offsets=[2], text="offset 2 after offset 5"),
    "so it does where the reader subscribed": fails(*SEEN, stepped(5, 2, polls=(1, 1), mode="subscribe")),
    "the step back lies between two polls": passes(*SEEN, stepped(5, 2)),
    "the clients' history has holes": unknown(*SEEN, stepped(5, 2, polls=(1, 1)), UNREADABLE, text="unreadable line"),
    "nothing was read": unknown(text="polls"),
}

test_order_within_a_poll = table_of("int-nonmonotonic-poll", CASES)
