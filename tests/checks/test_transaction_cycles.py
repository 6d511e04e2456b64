import itertools
from typing import Any

from tests.analysis.fact_rows import Row
from tests.analysis.transaction_rows import asked, read_committed, sent_in
from tests.checks.answers import NOT_UNIQUE, UNREADABLE, Case, fails, passes, table_of, unknown


def client(name: str, reads: str, *, at_ns: int, commits_ns: int, **other: Any) -> list[Row]:
    """A client that reads a value and writes another one in a transaction; values are called as their clients."""
    return [
        asked(process=name, begun_ns=0, commit_ns=commits_ns),
        sent_in(name, process=name, made_from=reads, **other),
        read_committed(reads, 0, process=name, time_ns=at_ns),
    ]


TWO = [*client("p0", "p1", at_ns=3, commits_ns=5), *client("p1", "p0", at_ns=4, commits_ns=6)]
INSIDE = [(table, {key: value for key, value in row.items() if key != "made_from"}) for table, row in TWO]


def three(last: str) -> list[Row]:
    first = [*client("p0", "p1", at_ns=3, commits_ns=5), *client("p1", "p2", at_ns=3, commits_ns=6)]
    return [*first, *client("p2", last, at_ns=6, commits_ns=7)]


def four() -> list[Row]:
    """Each reads from the next one, whose commit is asked for later, and the last one from the first."""
    names = ["p0", "p1", "p2", "p3", "p0"]
    pairs = enumerate(itertools.pairwise(names))
    return [row for at, (name, reads) in pairs for row in client(name, reads, at_ns=at, commits_ns=5 + at)]


def uncommitted(case: list[Row]) -> Case:
    return passes(*((table, row | {"isolation": None} if table == "polls" else row) for table, row in case))


CASES = {
    "two read from each other": fails(*TWO, text="in a circle: p1 0 from p0 0 from p1 0, the first of them"),
    "two read from each other while they are open": fails(*INSIDE, text="p1 0 from p0 0 from p1 0"),
    "one reads from the other": passes(*TWO[:4], *client("p1", "z", at_ns=4, commits_ns=6)[:0], read_committed("z", 1)),
    "one reads after it has asked to commit": passes(
        *INSIDE[:5], read_committed("p0", 0, process="p1", time_ns=6), read_committed("z", 1)
    ),
    "three read in a circle": fails(*three("p0"), text="p1 0 from p2 0 from p0 0"),
    "three read in a row": passes(*three("z")),
    "one reads what it wrote": fails(*client("p0", "p0", at_ns=3, commits_ns=5), text="p0 0 from p0 0"),
    "they read with read_uncommitted": uncommitted(TWO),
    "one reads the next transaction of the other": passes(
        *TWO[:5],
        asked(1, process="p0", begun_ns=6, commit_ns=8),
        sent_in("q", transaction=1, process="p0"),
        read_committed("q", 1, process="p1", time_ns=4),
    ),
    "two read from each other before they begin": fails(
        *((table, row | {"begun_ns": 5} if table == "client_transactions" else row) for table, row in TWO),
        text="p1 0 from p0 0 from p1 0",
    ),
    "one reads what the other has only then asked to commit": fails(
        *client("p0", "p1", at_ns=4, commits_ns=5),
        *client("p1", "p0", at_ns=5, commits_ns=7),
        text="p0 0 from p1 0 from p0 0, the first of them the record p1",
    ),
    "two are made of each other, by clocks that do not agree": fails(
        *client("p0", "p1", at_ns=8, commits_ns=5),
        *client("p1", "p0", at_ns=9, commits_ns=6),
        text="p0 0 from p1 0 from p0 0, the first of them the record p1",
    ),
    "two are made of each other, and committed at once": fails(
        *client("p0", "p1", at_ns=8, commits_ns=5),
        *client("p1", "p0", at_ns=9, commits_ns=5),
        text="p1 0 from p0 0 from p1 0",
    ),
    "one of them aborts": fails(
        *client("p1", "p0", at_ns=1, commits_ns=2),
        asked(process="p0", commit_ns=None, abort_ns=6),
        sent_in("p0", process="p0"),
        read_committed("p1", 0, process="p0", time_ns=3),
        text="p1 0 from p0 0 from p1 0",
    ),
    "one reads in its second transaction": fails(
        *INSIDE[3:],
        asked(process="p0", begun_ns=0, commit_ns=1),
        asked(1, process="p0", begun_ns=2, commit_ns=5),
        sent_in("p0", process="p0", transaction=1),
        read_committed("p1", 0, process="p0", time_ns=3),
        text="p1 0 from p0 1 from p1 0",
    ),
    "one reads what it wrote, and from another": fails(
        *client("p0", "p0", at_ns=3, commits_ns=5),
        read_committed("p1", 1, process="p0", time_ns=3),
        asked(process="p1", commit_ns=9),
        sent_in("p1", process="p1"),
        read_committed("p0", 0, process="p1", time_ns=7),
        severities=["violation"] * 2,
        text="in a circle: p0 0 from p1 0 from p0 0",
    ),
    "one begins while another is open": fails(
        *(row for row in INSIDE if row[1].get("begun_ns") is None),
        asked(process="p0", begun_ns=0, commit_ns=5),
        asked(1, process="p2", begun_ns=1, commit_ns=9),
        asked(process="p1", begun_ns=2, commit_ns=6),
        text="p1 0 from p0 0 from p1 0",
    ),
    "four read in a circle, which is precommitted-read's": passes(*four()),
    "values are not unique": unknown(*TWO, NOT_UNIQUE),
    "a client's lines are unreadable": unknown(*TWO, UNREADABLE),
}
CASES |= CASES["two read from each other"].without_each("sends", "polls")

test_whether_transactions_read_in_a_circle = table_of("transaction-cycles", CASES)
