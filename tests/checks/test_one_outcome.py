from tests.analysis.transaction_rows import WHOLE, became, ended, one, wrote
from tests.checks.answers import fails, passes, table_of

TWO = [
    became("Ongoing", 1, "orders-0", "orders-1"),
    became("PrepareCommit", 2, "orders-0", "orders-1"),
    became("CompleteCommit", 3),
]
BOTH = [*WHOLE, *TWO, wrote(0), wrote(0, partition=1)]
CASES = {
    "all partitions commit": passes(*BOTH, ended(1), ended(1, partition=1)),
    "one partition is torn off": fails(
        *BOTH, ended(1), ended(1, partition=1, commits=False), text="in orders-1 1 transactions of t", offsets=[1]
    ),
    "one partition is torn off twice, and the last marker is named": fails(
        *BOTH,
        *one(4, at="orders-1"),
        *(ended(1), ended(1, partition=1, commits=False), wrote(2, partition=1), ended(3, partition=1, commits=False)),
        text="in orders-1 2 transactions of t",
        offsets=[3],
    ),
    "more ended than was ever decided": passes(*WHOLE, *one(1), wrote(0), ended(1), wrote(2), ended(3, commits=False)),
    "one partition has no marker": passes(*BOTH, ended(1)),
    "a marker without records contradicts": passes(*WHOLE, *TWO, ended(1, commits=False)),
    "a decision was replaced, and a partition has both": fails(
        *WHOLE,
        became("Ongoing", 1, "orders-0", "orders-1"),
        became("PrepareCommit", 2, "orders-0", "orders-1"),
        became("PrepareAbort", 3, "orders-0", "orders-1"),
        became("CompleteAbort", 4),
        wrote(0),
        wrote(0, partition=1),
        ended(1),
        ended(1, partition=1, commits=False),
        text="ended in commit, and commit was decided for 0",
    ),
    "a decision was replaced before its markers": passes(
        *WHOLE,
        became("Ongoing", 1, "orders-0"),
        became("PrepareCommit", 2, "orders-0"),
        became("PrepareAbort", 3, "orders-0"),
        became("CompleteAbort", 4),
        wrote(0),
        ended(1, commits=False),
    ),
    "an abort follows a commit": passes(
        *WHOLE, *one(1), *one(4, commits=False), wrote(0), ended(1), wrote(2), ended(3, commits=False)
    ),
    "the log of the coordinator has a gap": passes(
        *BOTH, became("Empty", 9, whole=False), ended(1), ended(1, partition=1, commits=False)
    ),
}
CASES |= CASES["all partitions commit"].without_each("replicas")

test_whether_a_transaction_has_one_outcome = table_of("one-outcome", CASES)
