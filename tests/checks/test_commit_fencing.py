from typing import Any

from tests.analysis.fact_rows import Row, claimed
from tests.analysis.group_rows import owned, took
from tests.checks.answers import UNHEARD, Case, fails, passes, table_of, unknown

LED = claimed(1, 0, high_watermark=0, end=0)


def allowed(row: Row) -> Case:
    return passes(LED, row)


def wrong(row: Row, **wanted: Any) -> Case:
    return fails(LED, row, **wanted)


CASES = {
    "a member commits in its generation": allowed(took("a", 2)),
    "while members are to join again": allowed(took("a", 2, state="PreparingRebalance")),
    "while members wait for their assignments": wrong(
        took("a", 2, state="CompletingRebalance"),
        text=(
            "broker 1 accepted offset 7 of orders-0 for group g from a in generation 2, but the group was "
            "CompletingRebalance"
        ),
        shown='"group_generation":2,"known":true',
    ),
    "in an older generation": wrong(took("a", 1), text="but the group was in generation 2"),
    "in a later one": wrong(took("a", 3), text="but the group was in generation 2"),
    "a non-member": wrong(took("a", 2, known=False), text="but it was no member then, or not under that instance"),
    "without a generation, in a group with members": wrong(
        took("a", -1), text="from a in generation -1, but the group was in generation 2"
    ),
    "a client without an id, in a group with members": wrong(
        took("", -1, known=False), text="from a non-member in generation -1"
    ),
    "a client without an id, in an empty group": allowed(took("", -1, state="Empty", known=False)),
    "a client without an id, in a group that never had members": allowed(
        took("", -1, state=None, current=None, known=False)
    ),
    "a client without an id, in a group that has ended": allowed(took("", -1, state="Dead", known=False)),
    "a client without a generation, in an empty group": allowed(took("a", -1, state="Empty", known=False)),
    "a member of an empty group": wrong(took("a", 2, state="Empty", known=False), text="the group had no members"),
    "a member of an unknown group": wrong(took("a", 0, state=None, current=None), text="had no members"),
    "a member of a group that has ended": wrong(took("a", 2, state="Dead"), text="had no members"),
    "it was refused": allowed(took("a", 1, error=22)),
    "the coordinator does not say when it decided": unknown(LED, took("a", 1, decided_seq=None), text="decided_seq"),
    "lines of a broker are missing": unknown(LED, UNHEARD, took("a", 1), text="missing lines"),
    "members say what they own, and no coordinator tells": unknown(LED, owned(), text="no coordinator's log"),
    "there are no groups": passes(LED),
    "nothing is there": unknown(took("a", 1), text="leadership_claims"),
}

test_who_may_commit = table_of("I35", CASES)
