from tests.analysis.fact_rows import elected_uncleanly, read, replica
from tests.analysis.group_rows import owned
from tests.analysis.protocol_rows import stepped, superseded
from tests.checks.answers import (
    COMPACTED,
    DELETING,
    POWER_LOSS,
    UNCLEAN,
    UNREADABLE,
    excused,
    fails,
    noted,
    passes,
    table_of,
    unknown,
)

SEEN = [read("a", 2), read("b", 3, process="c1"), read("c", 5)]

MEMBER = [*SEEN, stepped(2, 5, polls=(12, 13), mode="subscribe")]

CASES = {
    "it goes on where it ended": passes(*SEEN),
    "it jumps over what another reader saw": fails(
        *SEEN, stepped(2, 5), offsets=[5], text="other readers read offset 3"
    ),
    "it jumps over a single offset": fails(
        *SEEN, read("d", 4), stepped(2, 4), offsets=[4], text="other readers read offset 3"
    ),
    "it jumps over unseen records": passes(*SEEN, stepped(3, 5)),
    "it jumps within a poll": passes(*SEEN, stepped(2, 5, polls=(1, 1))),
    "a cleaner may have taken what it jumps over": passes(*SEEN, stepped(2, 5), superseded(3)),
    "a cleaner may have taken what it jumps over, but for one": fails(
        *SEEN, read("d", 4), stepped(2, 5), superseded(3), offsets=[5], text="other readers read offset 4"
    ),
    "a cleaner may have taken what lies before it": fails(*SEEN, stepped(2, 5), superseded(2), offsets=[5]),
    "what it jumps over may have been deleted, and no replica states where the log begins": passes(
        *SEEN, stepped(2, 5), settings=DELETING
    ),
    "what it jumps over may have been compacted, and no broker has a log": passes(
        *SEEN, stepped(2, 5), settings=COMPACTED
    ),
    "what it jumps over was deleted": passes(*SEEN, stepped(2, 5), replica(1, 9, log_start_offset=5)),
    "one replica has deleted what it jumps over": fails(
        *SEEN, stepped(2, 5), replica(1, 9, log_start_offset=5), replica(2, 9), offsets=[5]
    ),
    "one replica has deleted what it jumps over, as it may": passes(
        *SEEN, stepped(2, 5), replica(1, 9, log_start_offset=5), replica(2, 9), settings=DELETING
    ),
    "what lies before it was deleted": fails(*SEEN, stepped(2, 5), replica(1, 9, log_start_offset=3), offsets=[5]),
    "it goes back": passes(*SEEN, stepped(5, 2)),
    "it subscribed": noted(*SEEN, stepped(2, 5, mode="subscribe")),
    "it does not say its mode": noted(*SEEN, stepped(2, 5, mode="")),
    "it owned the partition all along": fails(*MEMBER, owned(process="c0"), offsets=[5]),
    "it owned the partition to the end": fails(*MEMBER, owned(process="c0", until_index=None), offsets=[5]),
    "it owned the partition and does not say its mode": fails(
        *SEEN, stepped(2, 5, polls=(12, 13), mode=""), owned(process="c0"), offsets=[5]
    ),
    "it was given the partition in between": noted(*MEMBER, owned(process="c0", index=12)),
    "it gave the partition back in between": noted(*MEMBER, owned(process="c0", until_index=13)),
    "it gave the partition back while it polled": noted(*MEMBER, owned(process="c0", until_index=14, until_ns=14)),
    "it gave the partition back when its poll had just ended": fails(
        *MEMBER, owned(process="c0", until_index=14, until_ns=15), offsets=[5]
    ),
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
    "it assigns to itself, and others own": fails(*SEEN, stepped(2, 5), owned(process="c1"), offsets=[5]),
    "an unclean election between": excused(*SEEN, stepped(2, 5), elected_uncleanly(2, 1), settings=UNCLEAN),
    "the power was cut": excused(*SEEN, stepped(2, 5), settings=POWER_LOSS),
    "the clients' history has holes": unknown(*SEEN, stepped(2, 5), UNREADABLE),
    "nothing was read": unknown(text="polls"),
}

CASES |= CASES["it goes on where it ended"].with_unknown_cleaners()

test_jumps_from_poll_to_poll = table_of("poll-skip", CASES)
