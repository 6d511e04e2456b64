from tests.analysis.fact_rows import elected_uncleanly, read
from tests.analysis.group_rows import owned
from tests.analysis.protocol_rows import stepped
from tests.checks.answers import UNCLEAN, UNREADABLE, excused, fails, noted, passes, table_of, unknown

SEEN = [read("a", 2)]

MEMBER = [*SEEN, stepped(5, 2, polls=(12, 13), mode="subscribe")]

CASES = {
    "it goes on": passes(*SEEN),
    "it goes back": fails(*SEEN, stepped(5, 2), offsets=[2], text="from orders-0 offset 5 to offset 2"),
    "it gets the same again": fails(*SEEN, stepped(5, 5), offsets=[5]),
    "it jumps ahead": passes(*SEEN, stepped(2, 5)),
    "it goes back within a poll": passes(*SEEN, stepped(5, 2, polls=(1, 1))),
    "it subscribed": noted(*SEEN, stepped(5, 2, mode="subscribe")),
    "it does not say its mode": noted(*SEEN, stepped(5, 2, mode="")),
    "it owned the partition all along": fails(*MEMBER, owned(process="c0"), offsets=[2]),
    "it owned the partition to the end": fails(*MEMBER, owned(process="c0", until_index=None), offsets=[2]),
    "it owned the partition and does not say its mode": fails(
        *SEEN, stepped(5, 2, polls=(12, 13), mode=""), owned(process="c0"), offsets=[2]
    ),
    "it was given the partition in between": noted(*MEMBER, owned(process="c0", index=12)),
    "it gave the partition back in between": noted(*MEMBER, owned(process="c0", until_index=13)),
    "it gave the partition back and got it again": noted(
        *MEMBER, owned(process="c0", index=3, until_index=12), owned(process="c0", index=12)
    ),
    "it was told again of a partition that it had kept": noted(
        *MEMBER, owned(process="c0"), owned(process="c0", index=12)
    ),
    "it owned another partition": noted(*MEMBER, owned(1, process="c0")),
    "it owned the partition in an earlier life only": noted(
        *MEMBER, owned(process="c0", index=3, until_index=9, ended_by="subscribe")
    ),
    "it was given the partition only afterwards": noted(*MEMBER, owned(process="c0", index=14)),
    "another one owned the partition": noted(*MEMBER, owned(process="c1")),
    "it assigns to itself, and others own": fails(*SEEN, stepped(5, 2), owned(process="c1"), offsets=[2]),
    "an unclean election between": excused(
        *SEEN, stepped(5, 2, leader_epoch=2), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "the clients' history has holes": unknown(*SEEN, stepped(5, 2), UNREADABLE, text="unreadable line"),
    "nothing was read": unknown(text="polls"),
}

test_steps_back_from_poll_to_poll = table_of("nonmonotonic-poll", CASES)
