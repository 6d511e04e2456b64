from typing import Any

from tests.analysis.fact_rows import Row, elected_uncleanly, held, replica
from tests.analysis.transaction_rows import WHOLE, asked, ended, sent_in, wrote_marker
from tests.checks.answers import NOT_UNIQUE, UNCLEAN, UNHEARD, UNREADABLE, excused, fails, passes, table_of, unknown


def log(outcome: str, *, commits: bool = True, **of_asked: Any) -> list[Row]:
    """A transaction whose client knows an outcome, and that a marker ends."""
    return [
        *(*WHOLE, held(1, "a", 0, producer_id=7), ended(1, commits=commits)),
        *(sent_in("a", 0, transaction_outcome=outcome), asked(outcome=outcome, **of_asked)),
    ]


CASES = {
    "it commits as its client was told": passes(*log("committed")),
    "it aborts as its client was told": passes(*log("aborted", commits=False)),
    "it commits, and its client never asked for it": fails(
        *log("aborted", commit_ns=None),
        text="transaction 0 of p0 (t) has a in orders-0 at offset 0, and it was committed, and its client never",
        facts=["sends", "markers"],
    ),
    "it commits, and its client only says what it sent in it": fails(
        *log("aborted")[:-1], asked(1), text="its client never got a commit through"
    ),
    "it aborts, and its client was told that it is committed": fails(
        *log("committed", commits=False), text="it was aborted, and its client was told that it is committed"
    ),
    "it commits, and its client does not know": passes(*log("unknown")),
    "it aborts, and its client does not know": passes(*log("unknown", commits=False)),
    "it commits before it was asked for": fails(
        *log("committed", commit_ns=5), wrote_marker(1, 4), text="it was committed before it was asked for"
    ),
    "it commits when it was asked for": passes(*log("committed", commit_ns=5), wrote_marker(1, 5)),
    "a deposed leader had written the marker of an earlier transaction there": passes(
        *log("committed", commit_ns=5), wrote_marker(1, 4), wrote_marker(1, 6, leader_epoch=1)
    ),
    "a marker of another producer was written at that offset before": passes(
        *log("committed", commit_ns=5), wrote_marker(1, 4, producer_id=8)
    ),
    "it aborts before a commit was asked for": passes(
        *log("unknown", commits=False, commit_ns=5), wrote_marker(1, 4, result="abort")
    ),
    "the marker of another producer is of the other outcome": passes(
        *log("committed"), ended(2, commits=False, producer_id=8)
    ),
    "a later marker is of the other outcome": passes(*log("committed"), ended(2, commits=False)),
    "another replica has another marker": passes(*log("committed"), ended(1, commits=False, broker=2), replica(2, 1)),
    "no marker follows": passes(*WHOLE, *log("aborted")[5:], held(1, "a", 0, producer_id=7)),
    "another value is there": passes(
        *log("committed", commits=False)[:3], held(1, "b", 0, producer_id=7), *log("committed", commits=False)[4:]
    ),
    "two records are of one finding, which names the first": fails(
        *log("committed", commits=False), held(1, "b", -1, producer_id=7), sent_in("b", -1), text="has b", offsets=[-1]
    ),
    "an unclean election took what was decided": excused(
        *log("committed", commits=False), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "a client's lines are unreadable": unknown(*log("committed", commits=False), UNREADABLE),
    "a broker's lines are missing": unknown(*log("committed", commits=False), UNHEARD, text="missing lines"),
    "values are not unique": unknown(*log("committed", commits=False), NOT_UNIQUE),
}
CASES |= CASES["it commits as its client was told"].without_each("replicas")

test_whether_an_end_is_that_of_its_own_transaction = table_of("ends-own-transaction", CASES)
