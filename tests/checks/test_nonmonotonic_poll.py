from tests.analysis.fact_rows import elected_uncleanly, read
from tests.analysis.protocol_rows import stepped
from tests.checks.answers import UNCLEAN, excused, fails, noted, passes, table_of, unknown

SEEN = [read("a", 2)]

CASES = {
    "it goes on": passes(*SEEN),
    "it goes back": fails(*SEEN, stepped(5, 2), offsets=[2], text="from orders-0 offset 5 to offset 2"),
    "it gets the same again": fails(*SEEN, stepped(5, 5), offsets=[5]),
    "it jumps ahead": passes(*SEEN, stepped(2, 5)),
    "it goes back within a poll": passes(*SEEN, stepped(5, 2, polls=(1, 1))),
    "it subscribed": noted(*SEEN, stepped(5, 2, mode="subscribe")),
    "it does not say its mode": noted(*SEEN, stepped(5, 2, mode="")),
    "an unclean election between": excused(
        *SEEN, stepped(5, 2, leader_epoch=2), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "nobody read anything": unknown(text="polls"),
}

test_steps_back_from_poll_to_poll = table_of("nonmonotonic-poll", CASES)
