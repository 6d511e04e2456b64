from tests.analysis.fact_rows import read
from tests.analysis.transaction_rows import asked, read_committed, sent_in
from tests.checks.answers import NOT_UNIQUE, UNREADABLE, fails, passes, table_of, unknown

SENT = [asked(commit_ns=5), sent_in("a", 0)]
CASES = {
    "it is read when its commit was asked for": passes(*SENT, read_committed("a", 0, time_ns=5)),
    "it is read before": fails(
        *SENT,
        read_committed("a", 0, time_ns=4),
        text="c0 read a at orders-0 offset 0, and p0 asked to commit transaction 0 later",
        facts=["polls", "client_transactions"],
    ),
    "it is read before, and once more after": fails(*SENT, read_committed("a", 0, time_ns=4), read_committed("a", 0)),
    "two readers get it before, and the first of them is named": fails(
        *SENT, read_committed("a", 0, time_ns=4), read_committed("a", 0, time_ns=3, process="c1"), text="c1 read a"
    ),
    "a reader that reads all gets it before": passes(*SENT, read("a", 0)),
    "its commit was never asked for": passes(asked(commit_ns=None), sent_in("a", 0), read_committed("a", 0, time_ns=4)),
    "another transaction asked later": passes(*SENT, asked(1, commit_ns=9), read_committed("a", 0, time_ns=5)),
    "another client's transaction asked later": passes(
        *SENT, asked(process="p1", commit_ns=9), read_committed("a", 0, time_ns=5)
    ),
    "values are not unique": unknown(*SENT, read_committed("a", 0, time_ns=4), NOT_UNIQUE),
    "a client's lines are unreadable": unknown(*SENT, read_committed("a", 0, time_ns=4), UNREADABLE),
}
CASES |= CASES["it is read before"].without_each("sends", "polls")

test_when_committed_records_are_read = table_of("precommitted-read", CASES)
