from tests.analysis.fact_rows import Row, read, sent
from tests.analysis.group_rows import owned
from tests.analysis.protocol_rows import stepped, superseded
from tests.checks.answers import UNREADABLE, fails, passes, table_of, unknown

SEEN = [read("a", 2), read("b", 3, process="c1"), read("c", 5)]
ABORTED = sent("b", 3, transaction_outcome="aborted")
SKIPPED = (*SEEN, stepped(2, 5, polls=(1, 1), isolation="read_committed"))


def _unnamed(*rows: Row, **column: None) -> list[Row]:
    return [(table, row | column) for table, row in rows]


CASES = {
    "a read_committed reader leaves out what was aborted": passes(*SKIPPED, ABORTED),
    "a read_committed reader leaves out what may be aborted": passes(
        *SKIPPED, sent("b", 3, transaction_outcome="unknown")
    ),
    "a read_committed reader leaves out what was committed": fails(
        *SKIPPED, sent("b", 3, transaction_outcome="committed"), offsets=[5]
    ),
    "another read_committed reader saw it": fails(
        SEEN[0], read("b", 3, process="c1", isolation="read_committed"), *SKIPPED[2:], ABORTED, offsets=[5]
    ),
    "a read_uncommitted reader leaves out what was aborted": fails(
        *SEEN, stepped(2, 5, polls=(1, 1), isolation="read_uncommitted"), ABORTED, offsets=[5]
    ),
    "a reader of unknown isolation leaves out what was aborted": passes(*SEEN, stepped(2, 5, polls=(1, 1)), ABORTED),
    "another record of the partition was aborted": fails(
        *SKIPPED, sent("a", 2, transaction_outcome="aborted"), offsets=[5]
    ),
    "two readers saw what was aborted, one of them committed records only": fails(
        *SKIPPED,
        ABORTED,
        read("b", 3, process="c2", isolation="read_committed"),
        read("b", 3, process="c3", isolation="read_uncommitted"),
        offsets=[5],
    ),
    "it leaves out an aborted record and a committed one": fails(
        *SKIPPED, ABORTED, read("d", 4), offsets=[5], text="other readers read offset 4"
    ),
    "a read_uncommitted reader leaves out a cleaned record and another one": fails(
        *SEEN,
        stepped(2, 5, polls=(1, 1), isolation="read_uncommitted"),
        superseded(3),
        read("d", 4),
        offsets=[5],
        text="other readers read offset 4",
    ),
    "no poll names its topic": passes(*_unnamed(*SEEN, stepped(2, 5, polls=(1, 1)), topic=None)),
    "no poll names its partition": passes(*_unnamed(*SEEN, stepped(2, 5, polls=(1, 1)), partition=None)),
    "it gives everything": passes(*SEEN),
    "it leaves out what another reader saw": fails(
        *SEEN, stepped(2, 5, polls=(1, 1)), offsets=[5], text="other readers read offset 3"
    ),
    "so it does where the reader subscribed": fails(*SEEN, stepped(2, 5, polls=(1, 1), mode="subscribe")),
    "so it does where a rebalance came at that poll": fails(
        *SEEN, stepped(2, 5, polls=(10, 10), mode="subscribe"), owned(process="c0")
    ),
    "a cleaner may have taken it": passes(*SEEN, stepped(2, 5, polls=(1, 1)), superseded(3)),
    "the gap lies between two polls": passes(*SEEN, stepped(2, 5)),
    "the clients' history has holes": unknown(*SEEN, stepped(2, 5, polls=(1, 1)), UNREADABLE, text="unreadable line"),
    "nothing was read": unknown(text="polls"),
}

CASES |= CASES["it gives everything"].with_unknown_cleaners()

test_gaps_within_a_poll = table_of("int-poll-skip", CASES)
