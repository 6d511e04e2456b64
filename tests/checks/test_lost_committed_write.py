from tests.analysis.fact_rows import elected_uncleanly, read, replica
from tests.analysis.protocol_rows import superseded
from tests.analysis.transaction_rows import asked, read_committed, sent_in
from tests.checks.answers import (
    DELETING,
    FROM_ANYWHERE,
    NOT_UNIQUE,
    UNCLEAN,
    UNREADABLE,
    excused,
    fails,
    passes,
    table_of,
    unknown,
)

PASSED = [asked(), sent_in("a", 0), sent_in("b", 1, index=1), read_committed("a", 0), read_committed("c", 2)]
CASES = {
    "all is read": passes(*PASSED, read_committed("b", 1)),
    "a record was passed unread": fails(
        *PASSED, text="b at orders-0 offset 1, of transaction 0 of p0 (t), was not", offsets=[1], facts=["sends"]
    ),
    "a reader that reads all got it": fails(*PASSED, read("b", 1)),
    "none of its transaction was read": fails(asked(), sent_in("b", 1), read_committed("z", 0), read_committed("c", 2)),
    "its transaction was aborted": passes(*PASSED[:2], sent_in("b", 1, 1, transaction_outcome="aborted"), *PASSED[-2:]),
    "its client does not know": passes(*PASSED[:2], sent_in("b", 1, 1, transaction_outcome="unknown"), *PASSED[-2:]),
    "it is of no transaction": passes(
        *PASSED[:2], sent_in("b", 1, transaction=None, transaction_outcome=None), *PASSED[-2:]
    ),
    "a reader of that kind did not come so far": passes(*PASSED[:-2], read_committed("z", 0)),
    "it may have been compacted": passes(*PASSED, superseded(1)),
    "it may have been deleted": passes(*PASSED, replica(1, 9, log_start_offset=2), settings=DELETING),
    "the log begins after it, and nothing may be deleted": fails(*PASSED, replica(1, 9, log_start_offset=2)),
    "an unclean election followed": excused(*PASSED, elected_uncleanly(2, 1), settings=UNCLEAN),
    "a reader may have begun after it": passes(
        *PASSED[:-1], read_committed("c", 2, process="c1"), settings=FROM_ANYWHERE
    ),
    "a reader that may have begun anywhere passed it": fails(*PASSED, settings=FROM_ANYWHERE),
    "one reader came to it, and another one began after it": fails(*PASSED[:-1], read_committed("c", 2, process="c1")),
    "a send of it was not acknowledged": passes(asked(), sent_in("a", 0), sent_in("b"), *PASSED[-2:]),
    "values are not unique": unknown(*PASSED, NOT_UNIQUE),
    "a client's lines are unreadable": unknown(*PASSED, UNREADABLE),
}
CASES |= CASES["a record was passed unread"].without_each("sends", "polls")
CASES |= CASES["a record was passed unread"].with_unknown_cleaners()

test_whether_committed_records_are_read = table_of("lost-committed-write", CASES)
