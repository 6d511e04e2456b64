from tests.analysis.fact_rows import read
from tests.analysis.transaction_rows import asked, read_committed, sent_in
from tests.checks.answers import NOT_UNIQUE, UNREADABLE, fails, passes, table_of, unknown

ABORTED = [asked(commit_ns=None), sent_in("a", 0, transaction_outcome="aborted"), sent_in("b", 2, 1), asked(1)]
CASES = {
    "no record of it is read": passes(*ABORTED, read_committed("b", 2)),
    "a record of it is read": fails(
        *ABORTED,
        read_committed("a", 0),
        read_committed("b", 2),
        text="c0 read a at orders-0 offset 0, of transaction 0 of p0 (t)",
        facts=["sends", "polls"],
    ),
    "two readers get it": fails(*ABORTED, read_committed("a", 0), read_committed("a", 0, process="c1")),
    "a reader gets it again, and its first poll is named": fails(
        *ABORTED,
        *(read_committed("a", 0, index=7), read_committed("a", 0, index=2)),
        shown='"index":2',
    ),
    "a reader that reads all gets it": passes(*ABORTED, read("a", 0), read_committed("b", 2)),
    "its client does not know": passes(
        asked(), sent_in("a", 0, transaction_outcome="unknown"), read_committed("a", 0), sent_in("b", 2)
    ),
    "a send out of a transaction is read": passes(
        *ABORTED, sent_in("c", 3, transaction_outcome=None), read_committed("c", 3)
    ),
    "the same value of another topic is read": passes(*ABORTED, read_committed("a", 0, topic="others")),
    "values are not unique": unknown(*ABORTED, read_committed("a", 0), NOT_UNIQUE),
    "a client's lines are unreadable": unknown(*ABORTED, read_committed("a", 0), UNREADABLE),
}
CASES |= CASES["a record of it is read"].without_each("sends", "polls")

test_whether_aborted_records_are_read = table_of("aborted-transaction-read", CASES)
