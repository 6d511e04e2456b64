from typing import Any

from tests.analysis.fact_rows import Row, elected_uncleanly, held, read, replica, sent
from tests.analysis.protocol_rows import superseded
from tests.analysis.transaction_rows import asked, ended, read_committed, sent_in
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

RESULTS: dict[str, Any] = {"topic": "results"}
INPUTS = [sent(value, offset, process="s", index=offset) for offset, value in enumerate("abc")]


def made(value: str, of: str | None, transaction: int, *, group: str | None = "g", **other: Any) -> list[Row]:
    """An output of an input in a transaction of its own, which is committed."""
    row = sent_in(value, transaction, transaction, index=transaction, made_from=of, **RESULTS | other)
    return [row, asked(transaction, group=group)]


def closed(commits: bool) -> list[Row]:
    """The log of results, with the record A and a marker after it."""
    return [replica(1, 9, **RESULTS), held(1, "A", 0, producer_id=7, **RESULTS), ended(1, commits=commits, **RESULTS)]


ALL = [*INPUTS, *made("A", "a", 0), *made("B", "b", 1), *made("C", "c", 2)]
MAYBE: dict[str, Any] = {"transaction_outcome": "unknown"}
ABORTED: dict[str, Any] = {"transaction_outcome": "aborted"}
WITHOUT_B = [*INPUTS, *made("A", "a", 0), *made("C", "c", 2)]
CASES = {
    "each input has one output": passes(*ALL),
    "one that its producer wrote twice has two": passes(
        *ALL, *made("B2", "b", 3), read("b", 1, process="r"), read("b", 7, process="r")
    ),
    "one that its producer wrote once, and two readers got, has two": fails(
        *ALL, *made("B2", "b", 3), read("b", 1, process="r"), read("b", 1, process="q")
    ),
    "one has two": fails(*ALL, *made("B2", "b", 3), text="of group g b has 2 in results", shown='"values":["B","B2"]'),
    "one has two, one of them aborted": passes(*ALL, *made("B2", "b", 3, **ABORTED)),
    "one has two, one of them unknown": passes(*ALL, *made("B2", "b", 3, **MAYBE)),
    "one has two, one of them unknown, and a reader got it": fails(
        *ALL, *made("B2", "b", 3, **MAYBE), read_committed("B2", 3, **RESULTS)
    ),
    "one has two, one of them unknown, and a marker commits it": fails(
        *INPUTS, *made("A", "a", 0, **MAYBE), *made("A2", "a", 1), *closed(commits=True), text="a has 2"
    ),
    "one has two, one of them unknown, and a marker aborts it": passes(
        *INPUTS, *made("A", "a", 0, **MAYBE), *made("A2", "a", 1), *closed(commits=False)
    ),
    "two groups have one each": passes(*ALL, *made("A2", "a", 3, group="h")),
    "one has none": fails(*WITHOUT_B, text="of group g b has none, and a later one has", offsets=[1]),
    "one has an aborted one alone": fails(*WITHOUT_B, *made("B", "b", 1, **ABORTED), offsets=[1]),
    "one has an unknown one alone": passes(*WITHOUT_B, *made("B", "b", 1, **MAYBE)),
    "one has an unknown one, and a marker aborts it": fails(
        *INPUTS, *made("A", "a", 0, **MAYBE), *made("B", "b", 1), *closed(commits=False), text="a has none"
    ),
    "the last has none": passes(*INPUTS, *made("A", "a", 0), *made("B", "b", 1)),
    "the first has none, and the group began at the start": fails(
        *INPUTS, *made("B", "b", 1), *made("C", "c", 2), offsets=[0]
    ),
    "the first has none, and the group may have begun later": passes(
        *INPUTS, *made("B", "b", 1), *made("C", "c", 2), settings=FROM_ANYWHERE
    ),
    "another group has none of it": fails(
        *ALL, *made("A2", "a", 3, group="h"), *made("C2", "c", 4, group="h"), text="of group h b has none"
    ),
    "one without an output may have been aborted itself": passes(
        INPUTS[0], sent("b", 1, process="s", **MAYBE), INPUTS[2], *WITHOUT_B[3:]
    ),
    "one without an output was not acknowledged by all": passes(
        INPUTS[0], sent("b", 1, process="s", acks=1), INPUTS[2], *WITHOUT_B[3:]
    ),
    "one without an output may have been compacted": passes(*WITHOUT_B, superseded(1)),
    "one without an output may have been deleted": passes(
        *WITHOUT_B, replica(1, 3, log_start_offset=2), settings=DELETING
    ),
    "an unclean election gave it up": excused(*WITHOUT_B, elected_uncleanly(2, 1), settings=UNCLEAN),
    "an input of another topic has none": passes(*ALL, sent("z", 0, topic="others")),
    "one without an output is between others, and the group may have begun anywhere": fails(
        *WITHOUT_B, offsets=[1], settings=FROM_ANYWHERE
    ),
    "one has none, and the last has an aborted one too": fails(
        *WITHOUT_B, *made("C2", "c", 3, **ABORTED), offsets=[1], severities=["violation"]
    ),
    "one has none, and the last an aborted one alone": passes(
        *INPUTS, *made("A", "a", 0), *made("C", "c", 2, **ABORTED)
    ),
    "one has two, which were written outside of transactions": passes(
        *INPUTS,
        *(sent_in(value, transaction=None, made_from="b", **RESULTS) for value in ("B", "B2")),
        *(read_committed(value, offset, **RESULTS) for offset, value in enumerate(("B", "B2"))),
    ),
    "one has two, in transactions that commit no offsets": passes(
        *INPUTS, *made("B", "b", 0, group=None), *made("B2", "b", 1, group=None)
    ),
    "a pipeline writes records that it made from none": passes(*ALL, *made("X", None, 3), *made("Y", None, 4)),
    "values are not unique": unknown(*ALL, *made("B2", "b", 3), NOT_UNIQUE),
    "a client's lines are unreadable": unknown(*ALL, *made("B2", "b", 3), UNREADABLE),
}
CASES |= CASES["one has none"].with_unknown_cleaners()
CASES |= {"nothing was sent": unknown(read_committed("a", 0), text="no rows in sends")}

test_whether_each_input_has_one_output = table_of("exactly-once", CASES)
