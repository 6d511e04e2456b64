from tests.analysis.fact_rows import Row, elected_uncleanly
from tests.analysis.transaction_rows import WHOLE, became, one
from tests.checks.answers import UNCLEAN, UNHEARD, Case, excused, fails, passes, table_of, unknown


def valid(*rows: Row) -> Case:
    return passes(*WHOLE, *rows)


def broken(*rows: Row, text: str, shown: str = "") -> Case:
    return fails(*WHOLE, *rows, text=text, shown=shown)


EMPTY = became("Empty", 0)
ONGOING, TWO = became("Ongoing", 1, "orders-0"), became("Ongoing", 2, "orders-0", "orders-1")
CASES = {
    "transactions follow each other": valid(EMPTY, *one(1), *one(4, commits=False)),
    "a partition is added": valid(ONGOING, TWO, became("PrepareCommit", 3, "orders-1", "orders-0")),
    "a record is there twice": valid(
        ONGOING, became("PrepareCommit", 2, "orders-0"), became("PrepareCommit", 3, "orders-0")
    ),
    "a session begins anew": valid(*one(), became("Empty", 4)),
    "a transaction has the start of the one before it": broken(
        *one(1, started_ms=1),
        became("Ongoing", 4, "orders-0", started_ms=1, timestamp_ms=900),
        text="with the start of the transaction before it",
    ),
    "two transactions begin in one millisecond, after a clock was set back": valid(
        *one(1, started_ms=1), became("Ongoing", 4, "orders-0", started_ms=1, timestamp_ms=1)
    ),
    "a partition is added to the second transaction": valid(
        *one(1, started_ms=1),
        became("Ongoing", 4, "orders-0", started_ms=5, timestamp_ms=5),
        became("Ongoing", 5, "orders-0", "orders-1", started_ms=5, timestamp_ms=9),
    ),
    "Complete follows Ongoing": broken(
        *(ONGOING, became("CompleteCommit", 2)),
        text="does not follow Ongoing",
        shown='"before":{"offset":1,"leader_epoch":0,"state":"Ongoing"',
    ),
    "an abort follows a decision to commit": broken(
        ONGOING,
        became("PrepareCommit", 2, "orders-0"),
        became("PrepareAbort", 3, "orders-0"),
        text="t became PrepareAbort",
    ),
    "the decision was not stored": valid(
        ONGOING,
        became("PrepareCommit", 2, "orders-0", counts=False, told_ns=None),
        became("PrepareAbort", 3, "orders-0"),
    ),
    "no coordinator logs what it stored": valid(
        became("Ongoing", 1, "orders-0", counts=None),
        became("PrepareCommit", 2, "orders-0", counts=None),
        became("PrepareAbort", 3, "orders-0", counts=None),
    ),
    "no coordinator logs what it stored, and a decision about the second transaction was not": valid(
        *one(1, counts=None),
        became("Ongoing", 4, "orders-1", counts=None),
        became("PrepareCommit", 5, "orders-1", counts=None),
        became("PrepareAbort", 6, "orders-1", counts=None),
        became("CompleteAbort", 7, counts=None),
    ),
    "no coordinator logs what it stored, and what it repeats was not stored": valid(
        became("Ongoing", 1, "orders-0", counts=None),
        became("PrepareAbort", 2, "orders-0", counts=None),
        became("PrepareAbort", 3, "orders-0", counts=None),
        became("PrepareAbort", 4, "orders-0", counts=None),
        became("PrepareAbort", 5, "orders-0", counts=None, producer_epoch=1),
        became("PrepareAbort", 6, "orders-0", counts=None, producer_epoch=1),
    ),
    "no coordinator logs what it stored, and nothing explains it after repetitions": broken(
        became("Empty", 1, counts=None),
        became("Ongoing", 2, "orders-0", counts=None),
        became("Ongoing", 3, "orders-0", counts=None),
        became("CompleteCommit", 4, counts=None),
        text="does not follow Ongoing",
    ),
    "no coordinator logs what it stored, and nothing explains it": broken(
        became("Ongoing", 1, "orders-0", counts=None),
        became("Ongoing", 2, "orders-0", counts=None),
        became("CompleteCommit", 3, counts=None),
        text="does not follow Ongoing",
    ),
    "a partition is lost": broken(TWO, became("Ongoing", 3, "orders-1"), text="without partitions that it had"),
    "Prepare names another partition": broken(
        ONGOING, became("PrepareCommit", 2, "orders-1"), text="with other partitions than before"
    ),
    "Prepare lacks a partition": broken(
        TWO, became("PrepareCommit", 3, "orders-0"), text="with other partitions than before"
    ),
    "Prepare has a partition more": broken(
        ONGOING, became("PrepareCommit", 2, "orders-0", "orders-1"), text="with other partitions than before"
    ),
    "an abort of nothing has a partition": broken(
        EMPTY, became("PrepareAbort", 1, "orders-0"), text="with other partitions than before"
    ),
    "a decision is there again in another epoch": broken(
        ONGOING,
        became("PrepareCommit", 2, "orders-0"),
        became("PrepareCommit", 3, "orders-0", producer_epoch=1),
        text="does not follow PrepareCommit",
    ),
    "a decision is there again of another producer": broken(
        ONGOING,
        became("PrepareCommit", 2, "orders-0"),
        became("PrepareCommit", 3, "orders-0", producer_id=8),
        text="does not follow PrepareCommit",
    ),
    "an id that had expired begins": valid(*one(), became("Dead", 4), became("Ongoing", 5, "orders-0")),
    "no coordinator logs what it stored, and the log begins in a transaction": valid(
        became("Ongoing", 1, "orders-0", counts=None), became("CompleteCommit", 2, counts=None)
    ),
    "Complete has a partition": broken(
        ONGOING,
        became("PrepareCommit", 2, "orders-0"),
        became("CompleteCommit", 3, "orders-0"),
        text="and still has partitions",
    ),
    "the log has a gap": valid(ONGOING, became("CompleteCommit", 3, whole=False)),
    "two transactional ids take turns": valid(
        ONGOING, became("Empty", 2, transactional_id="u"), became("PrepareCommit", 3, "orders-0")
    ),
    "an allowed unclean election may have taken a record": excused(
        *WHOLE,
        ONGOING,
        became("CompleteCommit", 2),
        elected_uncleanly(2, 1, topic="__transaction_state"),
        settings=UNCLEAN,
    ),
    "lines of a broker are missing": unknown(*WHOLE, ONGOING, UNHEARD, text="missing lines"),
}
CASES |= CASES["transactions follow each other"].without_each("replicas")

test_which_states_follow_each_other = table_of("transaction-states", CASES)
